"""A desktop for tests: takes notices and requests to stay awake, and tells of them.

Usage: desktop.py LOG. Owns, on one bus, the names of a notification daemon and of logind, and
writes one line of JSON to LOG for each notice, each hold on sleep and each end of one. Needs
Debian's python3-dbus and python3-gi.
"""

import json
import os
import sys

import dbus
import dbus.service
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

NOTICES = "org.freedesktop.Notifications"
LOGIND = "org.freedesktop.login1"


def tell(**what):
    with open(sys.argv[1], "a", encoding="utf-8") as log:
        log.write(json.dumps(what) + "\n")


class Notices(dbus.service.Object):
    shown = 0

    @dbus.service.method(NOTICES, in_signature="susssasa{sv}i", out_signature="u")
    def Notify(self, program, _replaces, icon, title, body, _actions, _hints, _millis):
        self.shown += 1
        tell(what="notice", program=program, icon=icon, title=title, body=body)
        return self.shown

    @dbus.service.method(NOTICES, out_signature="as")
    def GetCapabilities(self):
        return ["body"]

    @dbus.service.method(NOTICES, out_signature="ssss")
    def GetServerInformation(self):
        return ("test", "longtake", "1", "1.2")

    @dbus.service.method(NOTICES, in_signature="u")
    def CloseNotification(self, _number):
        pass


class Logind(dbus.service.Object):
    @dbus.service.method(LOGIND + ".Manager", in_signature="ssss", out_signature="h")
    def Inhibit(self, what, who, why, mode):
        reading, writing = os.pipe()
        tell(what="hold", of=what, who=who, why=why, mode=mode)

        def ended(_source, _condition):
            os.close(reading)
            tell(what="release", of=what)
            return False

        GLib.io_add_watch(reading, GLib.IO_HUP, ended)
        fd = dbus.types.UnixFd(writing)
        os.close(writing)
        return fd


DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
notices = Notices(dbus.service.BusName(NOTICES, bus), "/org/freedesktop/Notifications")
logind = Logind(dbus.service.BusName(LOGIND, bus), "/org/freedesktop/login1")
tell(what="ready")
GLib.MainLoop().run()
