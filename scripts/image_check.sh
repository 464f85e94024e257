#!/usr/bin/env bash
# Checks the compose file, builds the Dockerfile for real and tries the image, on a machine without Docker's engine and without
# a registry: the base image is made with debootstrap, the build is buildah's, and two network namespaces play the
# container and the trainer's host. Needs root and Linux. Two to three minutes. Leaves nothing behind.
#
#   IMAGE_CHECK_SUITE      Debian release of the base image (default trixie; it must have Python 3.11 or later)
#   IMAGE_CHECK_MIRROR     Debian mirror (default: debootstrap's own)
#   IMAGE_CHECK_BASE_TAR   keep the base image's root filesystem in this tar file, and use it when it is there
#   IMAGE_CHECK_VOLUMES    more SOURCE:TARGET:ro for the build, separated by spaces; the settings of this machine's pip, and the
#                          files that they name, are mounted without being asked for (scripts/pip_settings.py)
#   IMAGE_CHECK_REAL       a release of vLLM, such as 0.32.0: also build Dockerfile.real-cpu with it, and sync with that;
#                          five minutes and 10 GB of disk more. Where CPU builds of torch are wheels for one Python only, choose
#                          the suite that has it: bookworm has 3.11.
set -Eeuo pipefail
cd "$(dirname "$0")/.."

suite=${IMAGE_CHECK_SUITE:-trixie}
release=0.21.0
port=8000
mock_ns=image-check-mock-$$
trainer_ns=image-check-trainer-$$
mock_address=10.213.0.2
trainer_address=10.213.0.1
work=

say() { printf '== %s\n' "$*"; }
fail() {
    printf 'image-check: %s\n' "$*" >&2
    exit 1
}

# Everything that this run made, in the opposite order. Its processes are those in its namespaces, and no others.
clean_up() {
    local status=$? ns point
    trap - EXIT
    for ns in "$mock_ns" "$trainer_ns"; do
        if ip netns pids "$ns" >/dev/null 2>&1; then
            ip netns pids "$ns" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
            ip netns del "$ns" || true
        fi
    done
    if [[ -n $work ]]; then
        { wait || true; } 2>/dev/null
        "${buildah[@]}" rm --all >/dev/null 2>&1 || true
        # debootstrap and buildah leave mounts when they are interrupted; rm must never follow one.
        while read -r point; do umount -l "$point" || true; done \
            < <(awk -v at="$work/" 'index($2, at) == 1 {print $2}' /proc/mounts | sort -r)
        rm -rf --one-file-system "$work"
    fi
    [[ $status == 0 ]] || printf 'image-check: FAILED\n' >&2
    exit "$status"
}

probe() { ip netns exec "$trainer_ns" timeout 60 python3 scripts/image_probe.py "$@"; }
in_image() { timeout 60 "${run_in[@]}" "$mock" "$@"; }

need() { # COMMAND PACKAGE
    command -v "$1" >/dev/null || fail "the command $1 is missing; install the Debian package $2"
}

check_tools() {
    [[ $(uname -s) == Linux && $(id -u) == 0 ]] || fail "needs Linux and root (debootstrap, network namespaces); try sudo"
    need buildah buildah
    need debootstrap debootstrap
    need docker-compose docker-compose
    need ip iproute2
    need python3 python3
    ip netns list >/dev/null 2>&1 || fail "this machine does not allow network namespaces ('ip netns list' fails)"
    local file
    for file in README.md LICENSE pyproject.toml; do [[ -f $file ]] || fail "$file is missing; the image is built from it"; done
}

check_compose() {
    local seen
    seen=$(env -u VLLM_VERSION -u MOCK_PORT -u MOCK_ADDRESS -u BASE_IMAGE timeout 60 docker-compose config) ||
        fail "docker-compose does not accept docker-compose.yml"
    grep -qF -- "127.0.0.1:8000:8000" <<<"$seen" || fail "the default service does not publish 127.0.0.1:8000"
    grep -qF -- "host.docker.internal:host-gateway" <<<"$seen" || fail "the default service has no name for the host"
    grep -qxE -- " *- '?$release'?" <<<"$seen" || fail "the default release is not $release"
    seen=$(VLLM_VERSION=0.99.0 MOCK_PORT=18000 timeout 60 docker-compose config)
    grep -qF -- "127.0.0.1:18000:8000" <<<"$seen" || fail "MOCK_PORT does not set the published port"
    grep -qxE -- " *- '?0.99.0'?" <<<"$seen" || fail "VLLM_VERSION does not set the release"
    [[ $(timeout 60 docker-compose config | without_profile) == mock ]] || fail "the default service is not mock alone"
}

# The services that start when no profile is named (compose 1.29 lists all of them with --services).
without_profile() {
    awk '/^[a-z]/ {inside = ($1 == "services:")}
        inside && /^  [a-z]/ {name = $1; sub(":", "", name); found[name] = 1}
        inside && /^    profiles:/ {delete found[name]}
        END {for (name in found) print name}'
}

# What cannot run here, a GPU's container and Docker itself, is checked as far as the schema goes.
check_compose_real() {
    local seen
    seen=$(env -u VLLM_TAG -u REAL_MODEL -u REAL_ADDRESS timeout 60 docker-compose --profile real config) ||
        fail "docker-compose does not accept the profile real"
    grep -qF -- "image: vllm/vllm-openai:v0.21.0" <<<"$seen" || fail "the GPU image is not v0.21.0 by default"
    grep -qF -- "VLLM_SERVER_DEV_MODE: '1'" <<<"$seen" || fail "the GPU container has no dev mode"
    grep -qF -- "'{\"backend\":\"nccl\"}'" <<<"$seen" || fail "the GPU container has no weight-transfer config"
    grep -qxE -- " *- '?8001'?" <<<"$seen" || fail "the GPU container does not serve on port 8001"
    grep -qxE -- " *- gpu" <<<"$seen" || fail "no GPU is reserved"
    seen=$(VLLM_TAG=v0.99.0 timeout 60 docker-compose --profile real config)
    grep -qF -- "image: vllm/vllm-openai:v0.99.0" <<<"$seen" || fail "VLLM_TAG does not set the GPU image"
    seen=$(REAL_VERSION=0.99.0 timeout 60 docker-compose --profile real-cpu config) ||
        fail "docker-compose does not accept the profile real-cpu"
    grep -qF -- "127.0.0.1:8001:8001" <<<"$seen" || fail "real-cpu does not publish 127.0.0.1:8001"
    grep -qF -- "VLLM_VERSION: 0.99.0" <<<"$seen" || fail "REAL_VERSION does not set the release of real-cpu"
    [[ -f Dockerfile.real-cpu ]] || fail "Dockerfile.real-cpu is missing"
}

make_base() {
    local tar=${IMAGE_CHECK_BASE_TAR:-$work/base.tar} container
    if [[ ! -f $tar ]]; then
        timeout 1200 debootstrap --variant=minbase --include=python3,python3-venv "$suite" "$work/base" \
            ${IMAGE_CHECK_MIRROR:+"$IMAGE_CHECK_MIRROR"} >"$work/debootstrap.log" 2>&1 ||
            fail "debootstrap of $suite failed: $(tail -n 1 "$work/debootstrap.log")"
        rm -rf "$work/base/var/cache/apt/archives" "$work/base/var/lib/apt/lists"
        tar -C "$work/base" --one-file-system -cf "$tar.part" .
        mv "$tar.part" "$tar"
        rm -rf --one-file-system "$work/base"
    fi
    container=$("${buildah[@]}" from scratch)
    timeout 300 "${buildah[@]}" add -q "$container" "$tar" / >/dev/null
    "${buildah[@]}" config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
    "${buildah[@]}" commit -q --rm "$container" localhost/image-check-base >/dev/null
}

build() { # NAME SECONDS [OPTION...]
    local name=$1 seconds=$2 volume volumes=()
    shift 2
    while read -r volume; do volumes+=(--volume "$volume"); done \
        < <(python3 scripts/pip_settings.py "$work/pip.conf" && tr ' ' '\n' <<<"${IMAGE_CHECK_VOLUMES:-}" | sed '/^$/d')
    [[ -f $work/pip.conf ]] || fail "the settings of pip could not be read"
    # The health check exists in Docker's image format only.
    TMPDIR=$work timeout "$seconds" "${buildah[@]}" bud --isolation chroot --format docker \
        --build-arg BASE_IMAGE=localhost/image-check-base "${volumes[@]}" "$@" -t "localhost/$name" . >"$work/build.log" 2>&1 || {
        tail -n 30 "$work/build.log" >&2
        fail "the build of $name failed; its last lines are above"
    }
}

# One value a line of a list in an image's configuration.
configured() { # LIST [IMAGE]
    "${buildah[@]}" inspect --type image --format "{{range .Docker.Config.$1}}{{println .}}{{end}}" "localhost/${2:-mock-vllm}" |
        sed '/^$/d'
}

check_image() {
    # Exit codes alone: what a process prints may be lost when it ends at once under chroot isolation.
    local user files
    user=$("${buildah[@]}" inspect --type image --format '{{.Docker.Config.User}}' localhost/mock-vllm)
    [[ $user =~ ^[1-9][0-9]*(:|$) ]] || fail "the image's user is '$user', not a number above 0"
    in_image python -c 'import os, sys; sys.exit(os.getuid() != int(sys.argv[1]))' "${user%%:*}" ||
        fail "processes do not run as user $user"
    in_image python -c 'import sys, importlib.util as u; sys.exit(u.find_spec("torch") is not None)' ||
        fail "torch is in the image"
    in_image python -c 'import sys, importlib.util as u; sys.exit(u.find_spec("pip") is not None)' ||
        fail "pip is in the mock's environment"
    in_image sh -c '! test -e /etc/pip.conf && ! test -w /opt/mock && ! test -w /models' ||
        fail "settings of the build are in the image, or its user may write to the program or the model"
    files=$("${buildah[@]}" mount "$mock")
    "${buildah[@]}" images --format '{{.Size}} {{.Name}}' | sort -k 2
    printf 'the project adds %s of programs and %s of models\n' "$(du -sh "$files/opt/mock" | cut -f 1)" \
        "$(du -sh "$files/models" | cut -f 1)"
    "${buildah[@]}" umount "$mock" >/dev/null
}

make_network() {
    ip netns add "$mock_ns"
    ip netns add "$trainer_ns"
    ip -n "$mock_ns" link add eth0 type veth peer name eth0 netns "$trainer_ns"
    ip -n "$mock_ns" address add "$mock_address/30" dev eth0
    ip -n "$trainer_ns" address add "$trainer_address/30" dev eth0
    local ns
    for ns in "$mock_ns" "$trainer_ns"; do
        ip -n "$ns" link set lo up
        ip -n "$ns" link set eth0 up
    done
}

check_running() {
    local command health status=0
    mapfile -t command < <(configured Entrypoint; configured Cmd)
    mapfile -t health < <(configured Healthcheck.Test | sed 1d)
    ((${#health[@]} > 0)) || fail "the image has no health check"
    ip netns exec "$mock_ns" timeout 60 "${run_in[@]}" "$visitor" "${health[@]}" >/dev/null 2>&1 && fail "the health check passes while nothing runs"
    ip netns exec "$mock_ns" timeout 600 "${run_in[@]}" "$mock" "${command[@]}" >"$work/mock.log" 2>&1 &
    serving=$!
    probe healthy "http://$mock_address:$port" 20 || { tail -n 20 "$work/mock.log" >&2; fail "'${command[*]}' is not healthy"; }
    probe version "http://$mock_address:$port" "$release"
    ip netns exec "$mock_ns" timeout 60 "${run_in[@]}" "$visitor" "${health[@]}" || status=$?
    ((status == 0)) || fail "the health check fails ($status) while the mock answers"
}

check_sync() {
    local options
    python3 -m conformance.tiny_model write "$work/checkpoint" --checkpoint B >/dev/null
    chmod 755 "$work" "$work/checkpoint"
    for options in --no-packed --packed; do
        ip netns exec "$trainer_ns" timeout 120 "${run_in[@]}" \
            --volume "$work/checkpoint:/checkpoint:ro" "$trainer" \
            vime-sync push /checkpoint --engine "http://$mock_address:$port" --master-address "$trainer_address" "$options" \
            >"$work/push.log" 2>&1 || {
            cat "$work/push.log" >&2
            fail "vime-sync push $options from the other namespace failed"
        }
        probe weights "http://$mock_address:$port" "$work/checkpoint/model.safetensors"
    done
}

# What `docker stop` does: the mock must end by itself at a SIGTERM, well before the SIGKILL that follows after 10 s.
check_stop() {
    local pid="" candidate began=$SECONDS status=0
    for candidate in $(ip netns pids "$mock_ns"); do
        if [[ $(tr '\0' ' ' <"/proc/$candidate/cmdline") == /opt/mock/bin/python*serve* ]]; then pid=$candidate; fi
    done
    [[ -n $pid ]] || fail "the mock's process is not to be found"
    kill -TERM "$pid"
    while kill -0 "$serving" 2>/dev/null; do
        ((SECONDS - began < 8)) || fail "the mock is still there 8 s after SIGTERM"
        sleep 0.1
    done
    wait "$serving" || status=$?
    ((status == 0)) || fail "the mock ended with status $status after SIGTERM, not 0"
}

# A real vLLM of Dockerfile.real-cpu, from the same two namespaces: healthy, synced with, gone after a SIGTERM.
check_real() {
    local url=http://$mock_address:8001 command options real pid began status=0
    build real-vllm-cpu 1800 --file Dockerfile.real-cpu --build-arg "VLLM_VERSION=$IMAGE_CHECK_REAL"
    real=$("${buildah[@]}" from --name real localhost/real-vllm-cpu)
    mapfile -t command < <(configured Entrypoint real-vllm-cpu)
    ip netns exec "$mock_ns" timeout 900 "${run_in[@]}" "$real" "${command[@]}" >"$work/real.log" 2>&1 &
    serving=$!
    ip netns exec "$trainer_ns" timeout 330 python3 scripts/image_probe.py healthy "$url" 300 ||
        { tail -n 20 "$work/real.log" >&2; fail "the real vLLM is not healthy"; }
    for options in --no-packed --packed; do
        ip netns exec "$trainer_ns" timeout 120 "${run_in[@]}" \
            --volume "$work/checkpoint:/checkpoint:ro" "$trainer" \
            vime-sync push /checkpoint --engine "$url" --master-address "$trainer_address" "$options" >"$work/push.log" 2>&1 ||
            { cat "$work/push.log" >&2; fail "vime-sync push $options to the real vLLM failed"; }
        probe received "$url" "$work/checkpoint/model.safetensors"
    done
    pid=$(ip netns pids "$mock_ns" | while read -r candidate; do
        [[ $(tr '\0' ' ' <"/proc/$candidate/cmdline") != "python -m conformance.real serve"* ]] || echo "$candidate"
    done)
    [[ -n $pid ]] || fail "the command that serves the real vLLM is not to be found"
    began=$SECONDS
    kill -TERM "$pid"
    wait "$serving" || status=$?
    ((SECONDS - began < 10)) || fail "the real vLLM took $((SECONDS - began)) s to end after SIGTERM"
    ((status == 143)) || fail "the real vLLM ended with status $status after SIGTERM, not 143"
    [[ -z $(ip netns pids "$mock_ns") ]] || fail "processes of the real vLLM are left"
}

check_tools
work=$(mktemp -d "${TMPDIR:-/tmp}/image-check.XXXXXX")
buildah=(buildah --root "$work/storage" --runroot "$work/run")
run_in=("${buildah[@]}" run --isolation chroot)
trap clean_up EXIT
trap 'exit 129' HUP INT TERM
say "compose file"
check_compose
check_compose_real
say "base image: Debian $suite"
make_base
say "build"
build mock-vllm 900
mock=$("${buildah[@]}" from --name mock localhost/mock-vllm)
# One container for each process at a time: buildah trips over its own mounts when two share one.
visitor=$("${buildah[@]}" from --name visitor localhost/mock-vllm)
trainer=$("${buildah[@]}" from --name trainer localhost/mock-vllm)
say "image"
check_image
say "the image's command in a network namespace of its own"
make_network
check_running
say "sync from another namespace"
check_sync
say "stop"
check_stop
if [[ -n ${IMAGE_CHECK_REAL:-} ]]; then
    say "vLLM $IMAGE_CHECK_REAL on a CPU"
    check_real
fi
say "image-check passed in $SECONDS s"
