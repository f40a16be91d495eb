#!/bin/sh
# Starts a worker on each host: ssh.sh HOST...
# Reads the line from worker.line in this folder, or from the file in $LONGTAKE_LINE.
set -eu
line="${LONGTAKE_LINE:-worker.line}"
[ "$#" -gt 0 ] || { echo "usage: $0 HOST..." >&2; exit 2; }
[ -r "$line" ] || { echo "no such file: $line (cluster up writes it)" >&2; exit 2; }
for host in "$@"; do
    # For this user only, before the secret is in it.
    ssh "$host" 'umask 077; mkdir -p ~/.config/longtake; cat > ~/.config/longtake/worker.line' \
        < "$line"
    ssh "$host" 'loginctl enable-linger "$(id -un)" 2>/dev/null || true
        systemctl --user reset-failed longtake-worker 2>/dev/null || true
        systemd-run --user --unit longtake-worker --property Restart=always \
            --property RestartSec=5 --property TimeoutStopSec=15min \
            "$(command -v longtake)" worker --join "$HOME/.config/longtake/worker.line"'
    echo "$host: started"
done
