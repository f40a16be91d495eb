#!/bin/sh
# Makes the small sound files of these tests with FFmpeg 5.1 (libmp3lame, libvorbis, libopus).
# The sweep is 0.5 * sin(2 pi (100 t + 1975 t^2)), 2 s, mono, 44.1 kHz: what the tests compute.
set -e
cd "$(dirname "$0")"
ff() { ffmpeg -v error -y -bitexact "$@"; }
sweep="aevalsrc=0.5*sin(2*PI*(100*t+1975*t*t)):s=44100:d=2"
ff -f lavfi -i "$sweep" -c:a libmp3lame -b:a 96k sweep.mp3
ff -f lavfi -i "$sweep" -c:a libvorbis -q:a 3 sweep.ogg
ff -f lavfi -i "$sweep" -ar 48000 -c:a libopus -b:a 64k sweep.opus
ff -f lavfi -i "$sweep" -c:a aac -b:a 96k sweep.m4a
ff -f lavfi -i "$sweep" -c:a flac sweep.flac
ff -f lavfi -i "$sweep" -c:a pcm_u8 -ar 22050 sweep-u8.wav
ff -f lavfi -i "$sweep" -ar 48000 -c:a libopus -b:a 64k sweep.webm
# Constant values, so that the shares of the downmix can be read off.
ff -f lavfi -i "aevalsrc=0.10|0.20|0.30|0.80|0.04|0.06:s=48000:d=0.2:c=5.1" -c:a flac surround.flac
ff -f lavfi -i "testsrc=s=64x48:r=10:d=1" -c:v libx264 -preset veryfast silent-film.mp4
ff -f lavfi -i "testsrc=s=64x48:r=10:d=2" -f lavfi -i "$sweep" -c:v libx264 -preset veryfast -c:a aac -b:a 96k film.mp4
