#!/bin/sh
# Makes the pictures beside this file with ImageMagick 6. They are four-channel JPEGs, which no
# encoder of ours writes: left half pure cyan with 20 % black, right half magenta and yellow.
set -eu
cd "$(dirname "$0")"
convert -size 16x32 xc:'cmyk(255,0,0,51)' xc:'cmyk(0,204,153,0)' +append \
    -colorspace CMYK -sampling-factor 1x1 -quality 100 -strip cmyk-adobe.jpg
convert cmyk-adobe.jpg -interlace JPEG -quality 100 -sampling-factor 1x1 cmyk-adobe-progressive.jpg
