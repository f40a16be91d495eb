/* A driver's library that answers as the environment says: what a machine with an old driver, without a device or with
   an old one does. Built by tests/driver.rs. */
#include <stdlib.h>
#include <string.h>

static int told(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

int cuDriverGetVersion(int *version) {
    *version = told("FALSE_VERSION", 13000);
    return 0;
}
int cuInit(unsigned flags) {
    (void)flags;
    return told("FALSE_INIT", 0);
}
int cuDeviceGetCount(int *count) {
    *count = told("FALSE_COUNT", 1);
    return 0;
}
int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return 0;
}
int cuDeviceGetName(char *name, int length, int device) {
    (void)device;
    memset(name, 0, length);
    strncpy(name, "False device", length - 1);
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    *bytes = (size_t)8 << 30;
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    /* 75 and 76: the parts of the compute capability. */
    *value = attribute == 75 ? told("FALSE_MAJOR", 9) : attribute == 76 ? 0 : 1;
    return 0;
}
int cuGetErrorName(int error, const char **name) {
    *name = error == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN";
    return 0;
}
