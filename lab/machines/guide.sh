# Sourced by scripts in a machine that lab/boot has booted: commands of the documents, requests, and the application.

# blocks DOCUMENT...: writes each block of commands to a file, named by its heading and its place below that.
blocks() {
    mkdir -p /tmp/blocks /tmp/done
    awk -v folder=/tmp/blocks '
        /^#/ && !inside { sub(/^#+ /, ""); heading = $0; gsub("/", "", heading); count = 0 }
        inside && /^ *```$/ { inside = 0 }
        inside { sub("^" indent, ""); print > file }
        /^ *```(sh|ini|text|apache)$/ { inside = 1; indent = $0; sub(/`.*/, "", indent); file = folder "/" heading "." ++count }
    ' "$@"
}
# The user who runs the commands: root, or `as=(runuser -u …)`.
as=()
# run HEADING.N [CHANGE]: prints and runs that block, with what an administrator changes in it, by sed.
run() {
    mv "/tmp/blocks/$1" /tmp/done/
    again "$@"
}
again() {
    sed "${2:-}" "/tmp/done/$1" > /tmp/block
    echo "== $1" && cat /tmp/block
    "${as[@]}" bash -euo pipefail /tmp/block
}
# Runs a command that is in the text of a document or in the comments of a configuration.
inline() {
    grep -qF "\`$1\`" ./*.md docs/*.md || grep -qxF "#   $1" ./*.example examples/*.example ||
        { echo "not in the documents: $1" >&2; exit 1; }
    echo "== $1"
    "${as[@]}" bash -euo pipefail -c "$1"
}
# paste HEADING.N FILE: runs the block at a terminal, pastes the file there, and types the number that is asked for.
paste() {
    local text='' character process shown typed
    mv "/tmp/blocks/$1" /tmp/done/
    echo "== $1" && cat "/tmp/done/$1" "$2"
    coproc TERMINAL { script --quiet --return --command "${as[*]} bash -euo pipefail '/tmp/done/$1'" /dev/null; }
    # They are gone with the process.
    # shellcheck disable=SC2154
    process=$TERMINAL_PID
    exec {shown}<&"${TERMINAL[0]}" {typed}>&"${TERMINAL[1]}"
    # until_shown PATTERN: it ends what is on the terminal.
    until_shown() {
        until [[ $text =~ $1 ]]; do
            IFS= read -r -d '' -N 1 -t 60 character <&"$shown" || { echo "at the terminal: $text" >&2 && return 1; }
            text+=$character
        done
    }
    until_shown 'Paste the settings'
    { cat "$2" && echo; } >&"$typed"
    until_shown 'type ([0-9]+) '
    echo "${BASH_REMATCH[1]}" >&"$typed"
    cat <&"$shown"
    exec {shown}<&- {typed}>&-
    wait "$process"
}
# values FILE: the lines NAME=value that a set-up page shows.
values() {
    php -r 'preg_match_all("~<div data-name=[^>]*>(.*?)</div>~s", file_get_contents($argv[1]), $lines);
        foreach ($lines[1] as $line) { echo html_entity_decode(strip_tags($line), ENT_QUOTES), "\n"; }' "$1"
}
# gives TEXT: the answer must contain the text.
gives() {
    answer=$(curl -s -m 60 -b "PHPSESSID=${id:-}" 'http://localhost/entreaulas/api/comedor.php?action=get_menu_types&aulario=aula1')
    [[ $answer == *"$1"* ]] || { echo "$answer; expected: $1" && return 1; }
}
# soon COMMAND...: it succeeds within two minutes.
soon() {
    local end=$((SECONDS + 120))
    until "$@"; do
        [ $SECONDS -lt $end ] || { echo "not within two minutes: $*" >&2 && return 1; }
        sleep 0.02
    done
}
# `systemctl` does not wait until lighttpd listens or nginx has new workers.
answers() { soon gives "$@"; }
succeeds() { answers '"success":true'; }
is_php() { answers 'OLD PHP SCRIPT'; }
install_package() { dpkg -i "$PACKAGE" > /dev/null; }
# application FOLDER SERVICE DATA USER: the PHP application, with one aulario.
application() {
    local aularios=$3/Centros/colegio/Aularios page
    mkdir -p "$1/api" "$aularios"
    for page in login.php day.php api/comedor.php; do
        sed "s/'service/'$2/g; s/centro1/colegio/; s#/DATA/service/#$3/#; s#__DIR__ . '/../data/#'$3/#" \
            "tests/fixtures/site/${page#api/}" > "$1/$page"
    done
    echo '{"name":"Aula 1"}' > "$aularios/aula1.json"
    chown -R "$4:" "$3/"
}
log_in() { id=$(curl -si -m 60 http://localhost/entreaulas/login.php | sed -n 's/^Set-Cookie: PHPSESSID=\([^;]*\).*/\1/p' | tail -n 1); }
