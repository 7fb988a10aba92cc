# Sourced by scripts in a machine that tests/boot has booted: commands of the documents, requests, and the application.

# blocks DOCUMENT...: writes each block of commands to a file, named by its heading and its place below that.
blocks() {
    mkdir -p /tmp/blocks /tmp/done
    awk -v folder=/tmp/blocks '
        /^#/ && !inside { sub(/^#+ /, ""); heading = $0; gsub("/", "", heading); count = 0 }
        inside && /^ *```$/ { inside = 0 }
        inside { sub("^" indent, ""); print > file }
        /^ *```(sh|ini|text)$/ { inside = 1; indent = $0; sub(/`.*/, "", indent); file = folder "/" heading "." ++count }
    ' "$@"
}
# The user who runs the commands: root, or `as=(runuser -u …)`.
as=()
# run HEADING.N: prints and runs that block.
run() {
    echo "== $1" && cat "/tmp/blocks/$1"
    "${as[@]}" bash -euo pipefail "/tmp/blocks/$1"
    mv "/tmp/blocks/$1" /tmp/done/
}
again() { cp "/tmp/done/$1" /tmp/blocks/ && run "$1"; }
# Runs a command that is in the text of a document or in the comments of a configuration.
inline() {
    grep -qF "\`$1\`" ./*.md docs/*.md || grep -qxF "#   $1" ./*.example examples/*.example ||
        { echo "not in the documents: $1" >&2; exit 1; }
    echo "== $1"
    "${as[@]}" bash -euo pipefail -c "$1"
}
examples=/usr/share/doc/comedor/examples
# copy EXAMPLE FILE: as the comments of a configuration say.
copy() { cp "$examples/$1.example" "$2"; }
# As the comments of that for Apache say.
enable_fastcgi() {
    copy apache-fastcgi.conf /etc/apache2/conf-available/comedor-fastcgi.conf
    inline 'sudo systemctl enable --now comedor.socket'
    inline 'sudo a2enmod proxy_fcgi'
    inline 'sudo a2enconf comedor-fastcgi'
    inline 'sudo apache2ctl configtest && sudo systemctl restart apache2'
    answers /api/comedor.php '"success":true'
}
disable_fastcgi() {
    inline 'sudo a2disconf --purge comedor-fastcgi && sudo systemctl restart apache2'
    inline 'sudo systemctl disable --now comedor.socket comedor.service'
    rm /etc/apache2/conf-available/comedor-fastcgi.conf
}
# The same at a terminal, where the questions are answered with no address, the application's address and y.
run_and_agree() {
    echo "== $1"
    script --quiet --return --command "bash -euo pipefail '/tmp/blocks/$1'" /dev/null <<< $'localhost\nhttp://localhost/\ny'
    mv "/tmp/blocks/$1" /tmp/done/
}
# gives PATH TEXT: the answer must contain the text.
gives() {
    answer=$(curl -s -m 60 -b "PHPSESSID=${id:-}" "http://localhost$1?action=get_menu_types&aulario=aula1")
    [[ $answer == *"$2"* ]] || { echo "$1: $answer; expected: $2" && return 1; }
}
# soon COMMAND...: it succeeds within ten seconds.
soon() {
    local end=$((SECONDS + 10))
    until "$@"; do
        [ $SECONDS -lt $end ] || { echo "not within ten seconds: $*" >&2 && return 1; }
        sleep 0.02
    done
}
# `systemctl` does not wait until lighttpd listens or nginx has new workers.
answers() { soon gives "$@"; }
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
log_in() { id=$(curl -si -m 60 "http://localhost$1/login.php" | sed -n 's/^Set-Cookie: PHPSESSID=\([^;]*\).*/\1/p' | tail -n 1); }
