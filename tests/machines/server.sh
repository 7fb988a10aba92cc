# Sourced by scripts in a machine that tests/boot has booted: lays out the server of a school, and uses it.

set -Eeuo pipefail
. tests/machines/guide.sh
trap 'echo "failed: ${BASH_SOURCE[0]}: $LINENO: $BASH_COMMAND" >&2' ERR

php_version=$(basename /etc/php/*)
fpm=php$php_version-fpm
date=2026-11-20
servers='apache2 nginx caddy lighttpd'

useradd --system --no-create-home maestra
usermod -aG www-data caddy
echo '127.0.0.1 school.example other.example' >> /etc/hosts
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=school.example -keyout /etc/ssl/school.pem -out /etc/ssl/school.pem 2> /dev/null
for folder in $servers php; do cp -a "/etc/$folder" "/tmp/clean-$folder"; done

# lay_out [NAME=VALUE]...: a server with the PHP application, without comedor.
lay_out() {
    # The web server: apache, nginx, caddy or lighttpd; and how PHP runs: module, fpm, pool (FPM with a pool for this
    # site), suexec; lighttpd starts it itself
    web=apache php=module
    # PHP's user, in a pool and with suexec
    user=www-data
    # The folder of the application, by an alias of the site if it is not below the document root
    application=/var/www/html/entreaulas
    # The data folder that the script names, and the folder that it is a link to, if it is one
    data=/DATA/entreaulas data_at=
    # The folder of the sessions: set by a line of php.ini, of the pool or of the application's code
    sessions=/var/lib/php/sessions ini='' pool='' code=''
    # Lines of the web server's configuration before the site and in it; whether Apache sends http to https; commands
    # that change something else
    server='' site='' tls='' also=''
    # The settings with which comedor is enabled by hand, and the options with which it is set up
    settings='' options=''
    [ $# -eq 0 ] || declare -g "$@"
    echo "== a server with ${*:-mod_php}"
    clear_server
    lay_out_application
    [ -z "$ini" ] || tee /etc/php/$php_version/{apache2,fpm,cgi}/conf.d/99-school.ini <<< "$ini" > /dev/null
    if [ $php = pool ]; then
        # As an administrator does: a copy of Debian's pool, with other names.
        sed "s/^\[www\]/[school]/; s/^\(user\|group\) = .*/\1 = $user/; s#^listen = .*#listen = /run/php/school.sock#" \
            "/etc/php/$php_version/fpm/pool.d/www.conf" > "/etc/php/$php_version/fpm/pool.d/school.conf"
        echo "$pool" >> "/etc/php/$php_version/fpm/pool.d/school.conf"
    fi
    "lay_out_$web"
    unit=${web/%apache/apache2}
    eval "$also"
    case $php in pool | fpm) systemctl restart "$fpm" ;; esac
    restart
}

# Everything that a deployment before has left.
clear_server() {
    local folder
    # shellcheck disable=SC2086  # several words
    systemctl stop $servers "$fpm"
    ! dpkg -s comedor || { systemctl disable --now comedor.socket comedor.service && dpkg --purge comedor; }
    rm -rf /etc/comedor /etc/systemd/system/comedor.* /run/systemd/system/*.service.d/test.conf
    rm -rf /var/www/html/entreaulas /var/www/other /srv/{aulas,sessions}
    rm -rf /DATA/* /srv/disk/* /home/maestra/* /var/lib/php/sessions/*
    for folder in $servers php; do
        rm -rf "/etc/$folder"
        cp -a "/tmp/clean-$folder" "/etc/$folder"
    done
    systemctl daemon-reload
} &> /dev/null

lay_out_application() {
    if [ -n "$data_at" ]; then
        mkdir -p "$data_at"
        ln -s "$data_at" "$data"
    fi
    application "$application" entreaulas "$data" "$user"
    if [ -n "$code" ]; then
        printf '<?php\n%s\n' "$code" > "$application/settings.php"
        sed -i "s#^session_start()#require_once '$application/settings.php';\n&#" "$application"/{,api/}*.php
    fi
    [ -d "$sessions" ] || install -d -o "$user" -m 700 "$sessions"
}

lay_out_apache() {
    local port=80
    if [ -n "$tls" ]; then
        port=443
        server+='
<VirtualHost *:80>
    ServerName school.example
    Redirect permanent / https://school.example/
</VirtualHost>'
        a2enmod -q ssl
    fi
    case $php in
    pool)
        site+='
    <FilesMatch "\.php$">
        SetHandler "proxy:unix:/run/php/school.sock|fcgi://school"
    </FilesMatch>'
        ;;
    suexec)
        site+="
    SuexecUserGroup $user $user
    ScriptAlias /php-cgi/ /var/www/php-cgi/
    Action x-php /php-cgi/php
    <FilesMatch \"\.php\$\">
        SetHandler x-php
    </FilesMatch>"
        install -d -o "$user" -g "$user" /var/www/php-cgi
        printf '#!/bin/sh\nexec php-cgi\n' > /var/www/php-cgi/php
        chown "$user:$user" /var/www/php-cgi/php
        chmod 755 /var/www/php-cgi/php
        chown -R "$user:$user" "$application"
        a2enmod -q suexec actions cgi
        ;;
    esac
    cat > /etc/apache2/sites-available/000-default.conf << SITE
$server
<VirtualHost *:$port>
    ServerName school.example
    $([ -z "$tls" ] || printf '%s\n' 'SSLEngine on' 'SSLCertificateFile /etc/ssl/school.pem')
    DocumentRoot /var/www/html
    $([[ $application == /var/www/html/* ]] || printf '%s\n' "Alias /entreaulas $application" \
        "<Directory $application>" 'Require all granted' '</Directory>')
    $site
</VirtualHost>
SITE
    [ $php = module ] || a2dismod -q "php$php_version"
    case $php in pool | fpm)
        a2dismod -q mpm_prefork
        a2enmod -q mpm_event proxy_fcgi
        a2enconf -q "$fpm"
        ;;
    esac
} > /dev/null

lay_out_nginx() {
    cat > /etc/nginx/sites-available/default << SITE
$server
server {
    listen 80 default_server;
    server_name school.example;
    root /var/www/html;
    $site
    location ~ \.php$ {
        include snippets/fastcgi-php.conf;
        fastcgi_pass unix:/run/php/$([ $php = fpm ] && echo "$fpm" || echo school).sock;
    }
}
SITE
}

lay_out_caddy() {
    cat > /etc/caddy/Caddyfile << SITE
https://school.example {
    tls /etc/ssl/caddy.pem /etc/ssl/caddy.pem
    root * /var/www/html
    php_fastcgi unix//run/php/$fpm.sock
    $site
}
SITE
    tls=yes
    install -m 600 -o caddy /etc/ssl/school.pem /etc/ssl/caddy.pem
}

lay_out_lighttpd() { lighty-enable-mod fastcgi fastcgi-php > /dev/null; }

restart() {
    systemctl restart $unit
    # lighttpd is not ready yet.
    soon curl -sko /dev/null -m 10 "http${tls:+s}://school.example"
}

# ask PAGE [OPTION]...: a request to the application, by curl, with the cookies of the login
ask() { curl -sSk -m 60 -b /tmp/cookies -c /tmp/cookies "http${tls:+s}://${host:-school.example}/entreaulas/$1" "${@:2}"; }
# api ACTION [OPTION]...
api() { ask "api/comedor.php?action=$1&aulario=aula1&date=$date&menu=basal" "${@:2}"; }
log_in() {
    rm -f /tmp/cookies
    ask login.php | expect in
}
# Every file in /etc, with its content.
state() {
    find /etc ! -type d -printf '%p %y %#m %u:%g %l\n' | sort
    find /etc -type f -exec sha256sum {} + | sort -k 2
}
unchanged() { diff /tmp/before <(state); }
# Standard input must contain a text.
expect() {
    local text
    text=$(cat)
    [[ $text == *"$1"* ]] || { echo "expected $1: $text" >&2 && return 1; }
}

# /tmp/next.deb: a newer version of the package
next_version() {
    dpkg-deb -R "$PACKAGE" /tmp/next
    sed -i 's/^Version: .*/&.1/' /tmp/next/DEBIAN/control
    dpkg-deb --root-owner-group -b /tmp/next /tmp/next.deb > /dev/null
}
# set_up STATUS [OPTION]...: `comedor setup`, with the application's address, ends with this status.
set_up() {
    local status=0
    # shellcheck disable=SC2086  # several words
    comedor setup --yes $options "${@:2}" "${address:-http${tls:+s}://school.example/entreaulas/}" < /dev/null &> /tmp/output || status=$?
    [ "$status" = "$1" ] || { echo "status $status instead of $1" && cat /tmp/output && return 1; }
}
# What set-up leaves to an administrator: the lines that it prints, where it says.
add_lines() {
    rm -rf /tmp/before-lines
    cp -a /etc/$web /tmp/before-lines
    sed -n '/^Add this/,/^then reload/p' /tmp/output | sed '1d;$d' > /tmp/lines
    case $web in
    nginx) sed -i '/server_name/r /tmp/lines' /etc/nginx/sites-available/default ;;
    caddy) sed -i '/example {/r /tmp/lines' /etc/caddy/Caddyfile ;;
    lighttpd) cp /tmp/lines /etc/lighttpd/conf-enabled/90-comedor.conf ;;
    esac
    restart
}
remove_lines() {
    rm -r /etc/$web
    cp -a /tmp/before-lines /etc/$web
    restart
}
check_is_clean() {
    comedor check > /tmp/findings || { cat /tmp/findings && return 1; }
}

# save DISH
save() { api save_menu -d "{\"date\":\"$date\",\"menu_type\":\"basal\",\"plates\":{\"primero\":{\"name\":\"$1\"}}}"; }
# Ten times in a row: after a reload, each process with the old configuration may answer once more.
script_answers() {
    local end=$((SECONDS + 10)) times=0 answer
    log_in
    until [ $times = 10 ]; do
        answer=$(api get_menu_types)
        times=$((times + 1))
        [[ $answer == *'"by": "OLD PHP SCRIPT"'* ]] || times=0
        [ $SECONDS -lt $end ] || { echo "not the script: $answer" >&2 && return 1; }
    done
}
# The application's page and comedor read what the other has saved.
comedor_answers() {
    local dish=$RANDOM
    log_in
    save "Sopa $dish" | expect '"success":true'
    ask "day.php?date=$date" | expect "Sopa $dish"
    ask "day.php?date=$date" -d plate=segundo -d "name=Pescado $dish" | expect "Pescado $dish"
    api get_menu | expect "Pescado $dish"
    api get_menu | expect '{"success":true,'
}
# … and so does the script, after comedor has gone.
script_reads_the_menu() {
    script_answers
    api get_menu | expect 'Pescado'
}
