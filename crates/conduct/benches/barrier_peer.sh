#!/bin/bash
# The barrier that `barrier.rs` is compared with: one token a line over nc, as MMTests' run-kvm.sh does it. Written anew
# from its description: a guest asks whether the host listens, sends its token, and listens itself until the token comes
# back; the host counts tokens and sends them back, four guests at a time, asking each first whether it listens.
#
# barrier_peer.sh TARGETS ROUNDS PORT: prints a line a round with the times (us since 1970) at which its targets went on.
set -u
targets=$1 rounds=$2 port=$3 home=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$home"' EXIT

listening() { until nc -z "$1" "$2" 2>/dev/null; do sleep 1; done; }

guest() {
    local own="127.0.1.$1" round token
    for ((round = 0; round < rounds; round++)); do
        listening 127.0.0.1 "$port"
        echo "$round" | nc -q 0 127.0.0.1 "$port"
        while read -r token; do
            [ "$token" = "$round" ] && break
        done < <(exec nc -l -k "$own" "$port")
        echo "${EPOCHREALTIME/./}" >>"$home/went.$round"
        kill $! 2>/dev/null
        wait $! 2>/dev/null
    done
}

release() {
    listening "$1" "$port"
    echo "$2" | nc -q 0 "$1" "$port"
}
export -f release listening
export port

: >"$home/tokens"
nc -l -k 127.0.0.1 "$port" >>"$home/tokens" &
for ((one = 1; one <= targets; one++)); do guest "$one" & done
for ((round = 0; round < rounds; round++)); do
    begun=$SECONDS
    until [ "$(grep -c "^$round\$" "$home/tokens")" -ge "$targets" ]; do
        [ $((SECONDS - begun)) -gt 20 ] && echo "lost $round" && exit 0
        sleep 0.01
    done
    seq 1 "$targets" | sed "s/.*/127.0.1.& $round/" | xargs -P 4 -L 1 bash -c 'release "$0" "$1"'
    until [ "$(cat "$home/went.$round" 2>/dev/null | wc -l)" -ge "$targets" ]; do
        [ $((SECONDS - begun)) -gt 40 ] && echo "lost $round" && exit 0
        sleep 0.01
    done
    paste -sd' ' "$home/went.$round"
done
