#!/usr/bin/env bash
# A small cluster on this machine, to try and to measure a job of several ranks (docs/cluster.md): each node is a network namespace
# with one link of a given bandwidth and latency to a switch. Needs root, iproute2, Open MPI, and Python 3 if the kernel has no netem.
#
#   cluster-here.sh up N [RATE [DELAY]]   makes nodes 0 .. N-1; RATE as tc has it (1gbit; -: not limited), DELAY one way (100us)
#   cluster-here.sh run COMMAND ..        starts a rank of COMMAND on each node, with mpirun on node 0
#   cluster-here.sh on K COMMAND ..       runs a command on node K, whose address is 10.99.0.(K+1)
#   cluster-here.sh bytes                 prints what each node has sent and received
#   cluster-here.sh down                  removes it all
#
# CLUSTER_CPUS=0,1: node K runs on the processor with that number, by taskset. CLUSTER_NAME (default ggl): the first letters of names, so that
# several clusters can be there at once.
#
# A node sends at RATE, by the kernel's token bucket. The delay is the kernel's netem where there is one. Without it, frames pass
# a program, cluster-wire.py, which holds each back until it is due.
set -euo pipefail
name=${CLUSTER_NAME:-ggl} folder=/tmp/cluster-here.${CLUSTER_NAME:-ggl}
here=$(cd "$(dirname "$0")" && pwd)

die() {
    echo "cluster-here.sh: $*" >&2
    exit 2
}

node() { echo "$name-node$1"; }

count() {
    [ -f "$folder/nodes" ] || die "there is no cluster: up N makes one"
    cat "$folder/nodes"
}

up() {
    local n=${1:-} rate=${2:--} delay=${3:-0us} parent burst k link
    [[ $n =~ ^[1-9][0-9]?$ ]] || die "up N [RATE [DELAY]]: N is 1 to 99"
    burst=10k # a frame; at a high rate what is sent in the time in which the kernel's clock reacts
    [[ $rate =~ ^([0-9]+)gbit$ ]] && burst=$((10 * BASH_REMATCH[1]))k
    [ ! -e "$folder" ] || die "there is a cluster already: down removes it"
    mkdir "$folder"
    trap 'down; die "the cluster was not made"' ERR
    echo "$n" >"$folder/nodes"
    ip link add "$name-switch" type bridge
    ip link set "$name-switch" up mtu 9000
    for ((k = 0; k < n; k++)); do
        link=$name-port$k
        ip netns add "$(node "$k")"
        ip link add "$link" mtu 9000 type veth peer name eth0 mtu 9000 netns "$(node "$k")"
        ip link set "$link" master "$name-switch"
        ip link set "$link" up
        ip -n "$(node "$k")" link set lo up
        if [ "$delay" = 0us ] || ip netns exec "$(node "$k")" tc qdisc add dev eth0 root handle 1: netem delay "$delay" 2>/dev/null; then
            ip -n "$(node "$k")" address add "10.99.0.$((k + 1))/24" dev eth0
            ip -n "$(node "$k")" link set eth0 up
        else
            wire "$k" "$delay"
        fi
        # both directions of a link have the rate: what the node sends, and what the switch sends to it
        if [ "$rate" != - ]; then
            parent=(root)
            [ "$delay" = 0us ] || [ -f "$folder/wire$k" ] || parent=(parent 1:)
            ip netns exec "$(node "$k")" tc qdisc add dev eth0 "${parent[@]}" tbf rate "$rate" burst "$burst" latency 200ms
            tc qdisc add dev "$link" root tbf rate "$rate" burst "$burst" latency 200ms
        fi
        echo "10.99.0.$((k + 1)) slots=1"
    done >"$folder/hosts"
    launcher >"$folder/launcher"
    chmod +x "$folder/launcher"
}

# The node has the address on a device of its own, tap0; the wire carries frames between that and eth0, late.
wire() {
    local k=$1
    ip netns exec "$(node "$k")" ip tuntap add tap0 mode tap
    ip -n "$(node "$k")" link set tap0 up mtu 9000
    ip -n "$(node "$k")" link set eth0 up promisc on
    ip -n "$(node "$k")" address add "10.99.0.$((k + 1))/24" dev tap0
    ip netns exec "$(node "$k")" "$here/cluster-wire.py" tap0 eth0 "$2" >"$folder/wire$k.log" 2>&1 &
    echo $! >"$folder/wire$k"
}

# What mpirun uses instead of ssh: ADDRESS COMMAND
launcher() {
    cat <<EOF
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
k=\$((\${1##*.} - 1))
shift
exec $here/cluster-here.sh on \$k /bin/sh -c "\$*"
EOF
}

on() {
    local k=$1 cpus=()
    shift
    if [ -n "${CLUSTER_CPUS:-}" ]; then
        local all
        IFS=, read -ra all <<<"$CLUSTER_CPUS"
        cpus=(taskset -c "${all[k % ${#all[@]}]}")
    fi
    # a host name of its own, and the names of MPI's files with it
    exec ip netns exec "$(node "$k")" unshare --uts sh -c 'hostname "$0"; exec "$@"' "node$k" "${cpus[@]}" "$@"
}

run() {
    local n device=eth0
    n=$(count)
    [ ! -f "$folder/wire0" ] || device=tap0
    on 0 env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 CLUSTER_NAME="$name" CLUSTER_CPUS="${CLUSTER_CPUS:-}" \
        mpirun -n "$n" --hostfile "$folder/hosts" --map-by node --bind-to none --mca plm_rsh_agent "$folder/launcher" \
        --mca btl self,tcp --mca pml ob1 --mca btl_tcp_if_include "$device" --mca oob_tcp_if_include "$device" "$@"
}

bytes() {
    local n k device
    n=$(count)
    for ((k = 0; k < n; k++)); do
        device=$([ -f "$folder/wire$k" ] && echo tap0 || echo eth0)
        ip netns exec "$(node "$k")" sh -c "cat /sys/class/net/$device/statistics/tx_bytes /sys/class/net/$device/statistics/rx_bytes" |
            tr '\n' ' ' | sed "s/^\([0-9]*\) \([0-9]*\).*/node$k sent \1 received \2/"
        echo
    done
}

down() {
    local n k
    n=$(count)
    for ((k = 0; k < n; k++)); do
        [ ! -f "$folder/wire$k" ] || kill "$(cat "$folder/wire$k")" 2>/dev/null || true
        ip netns del "$(node "$k")" 2>/dev/null || true
        ip link del "$name-port$k" 2>/dev/null || true
    done
    ip link del "$name-switch" 2>/dev/null || true
    rm -rf "$folder"
}

command=${1:-}
[ $# = 0 ] || shift
case $command in
up | run | on | bytes | down) "$command" "$@" ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    [ "$command" = --help ] || exit 2
    ;;
esac
