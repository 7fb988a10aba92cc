# Sourced by scripts in a machine that lab/boot has booted: lays out the server of a school, and uses it.

set -Eeuo pipefail
. lab/machines/guide.sh
trap 'echo "failed: ${BASH_SOURCE[0]}: $LINENO: $BASH_COMMAND" >&2' ERR

php_version=$(basename /etc/php/*)
fpm=php$php_version-fpm
date=2026-11-20
# The folders in the commands of the guide
application=/var/www/html/entreaulas data=/DATA/entreaulas
servers='apache2 nginx caddy lighttpd'

# The machine that this is a copy of may be a container, in which the set-up page offers no COMEDOR_SCRIPT.
rm -f /.dockerenv
useradd --system --no-create-home maestra
usermod -aG www-data caddy
echo '127.0.0.1 school.example other.example' >> /etc/hosts
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=school.example -keyout /etc/ssl/school.pem -out /etc/ssl/school.pem 2> /dev/null
for folder in $servers php; do cp -a "/etc/$folder" "/tmp/clean-$folder"; done

# lay_out [NAME=VALUE]...: a server with the PHP application, without comedor.
lay_out() {
    # The web server: apache, nginx, caddy or lighttpd; and how PHP runs: module, fpm, pool (FPM with a pool for this
    # site); lighttpd starts it itself
    web=apache php=module
    # PHP's user, in a pool
    user=www-data
    # The folder that the data folder is a link to, if it is one
    data_at=
    # The folder of the sessions, set by lines of the pool
    sessions=/var/lib/php/sessions pool=''
    # Lines of the web server's configuration before the site and in it; whether Apache sends http to https; commands
    # that change something else
    server='' site='' tls='' also=''
    [ $# -eq 0 ] || declare -g "$@"
    echo "== a server with ${*:-mod_php}"
    clear_server
    lay_out_application
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
    rm -rf /etc/comedor /etc/systemd/system/comedor.*
    rm -rf /var/www/html/entreaulas /var/www/other /srv/sessions
    rm -rf /DATA/* /srv/disk/* /var/lib/php/sessions/*
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
    application $application entreaulas $data "$user"
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
    [ $php != pool ] || site+='
    <FilesMatch "\.php$">
        SetHandler "proxy:unix:/run/php/school.sock|fcgi://school"
    </FilesMatch>'
    cat > /etc/apache2/sites-available/000-default.conf << SITE
$server
<VirtualHost *:$port>
    ServerName school.example
    $([ -z "$tls" ] || printf '%s\n' 'SSLEngine on' 'SSLCertificateFile /etc/ssl/school.pem')
    DocumentRoot /var/www/html
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
    soon is_ready
}
# lighttpd is not, when `systemctl` has restarted it.
is_ready() { curl -sko /dev/null -m 10 "http${tls:+s}://school.example"; }

# That of the application
address() { echo "http${tls:+s}://${host:-school.example}/entreaulas"; }
# ask PAGE [OPTION]...: a request to the application, by curl, with the cookies of the login
ask() { curl -sSk -m 60 -b /tmp/cookies -c /tmp/cookies "$(address)/$1" "${@:2}"; }
# api ACTION [OPTION]...
api() { ask "api/comedor.php?action=$1&aulario=aula1&date=$date&menu=basal" "${@:2}"; }
log_in() {
    rm -f /tmp/cookies
    ask login.php | expect in
}
# Standard input must contain a text.
expect() {
    local text
    text=$(cat)
    [[ $text == *"$1"* ]] || { echo "expected $1: $text" >&2 && return 1; }
}

# save DISH
save() { api save_menu -d "{\"date\":\"$date\",\"menu_type\":\"basal\",\"plates\":{\"primero\":{\"name\":\"$1\"}}}"; }
# Ten times in a row: after a reload, each process with the old configuration may answer once more.
script_answers() {
    local end=$((SECONDS + 120)) times=0 answer
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

# What "Try" of the set-up page does: a request without a login, the same menu types as the script, and a save of the
# names that a menu has.
try_comedor() {
    local page=api/comedor-setup.php
    curl -isSk -m 60 "$(address)/api/comedor.php?action=get_menu_types&aulario=aula1" > /tmp/nobody
    grep -qi '^x-powered-by: comedor' /tmp/nobody || { cat /tmp/nobody && return 1; }
    expect '"code":"INVALID_SESSION","reason":"session"' < /tmp/nobody
    log_in
    api get_menu_types > /tmp/own
    ask "$page?action=get_menu_types&aulario=aula1" > /tmp/scripts
    php -r '[$own, $script] = array_map(fn ($file) => json_decode(file_get_contents($file)), ["/tmp/own", "/tmp/scripts"]);
        exit($own->success && $own->menu_types == json_decode($script->body)->menu_types ? 0 : 1);' ||
        { cat /tmp/own /tmp/scripts && return 1; }
    api get_menu > /tmp/menu
    php -r '$menu = json_decode(file_get_contents("/tmp/menu"));
        $names = array_map(fn ($plate) => ["name" => $plate->name], (array) $menu->menu->plates);
        echo json_encode(["date" => $menu->date, "menu_type" => $menu->menu_type, "plates" => $names]);' > /tmp/body
    api save_menu -H 'Content-Type: application/json' -d @/tmp/body | expect '"success":true'
}

# follow_the_guide HEADING [SHOWN]: the whole way of an administrator on this server, by commands of the guide only. SHOWN
# is the heading that the page names, if the administrator chooses another one.
follow_the_guide() {
    install_package
    open_page "${2:-$1}"
    paste '3. Configure.1' /tmp/values
    check_settings
    script_answers
    enable "$1"
    try_comedor
    run '5. Try.1'
    comedor_answers
}
# Step 3 of the guide, before the page is removed.
check_settings() {
    { run '3. Configure.2' "s/www-data/$user/" || [ $? = 1 ]; } > /tmp/checked
    only_the_page_is_found /tmp/checked
}
open_page() {
    run '2. Open the set-up page.1'
    # The page shows itself to an administrator only.
    curl -sSk -m 60 "$(address)/api/comedor-setup.php" > /tmp/page
    grep COMEDOR_ /tmp/page && return 1
    log_in
    ask "day.php?date=$date" -d plate=primero -d name=Lentejas > /dev/null
    ask api/comedor-setup.php > /tmp/page
    values /tmp/page > /tmp/values
    # A note can follow the heading.
    grep -qF "<bdi>$user</bdi>" /tmp/page && grep -qE "<bdi>$1(</bdi>| \()" /tmp/page || { cat /tmp/page && return 1; }
}
# Step 4 of the guide.
enable() {
    run "$1.1"
    case $1 in
    nginx) sed -i '/^server {/a include snippets/comedor.conf;' /etc/nginx/sites-available/default ;;
    Caddy) sed -i '/^https.* {/a import comedor.caddyfile' /etc/caddy/Caddyfile ;;
    esac
    [ ! -e "/tmp/blocks/$1.2" ] || run "$1.2"
    [ "$user $data_at $sessions" = 'www-data  /var/lib/php/sessions' ] || change_the_service
    soon try_comedor
}
# For another user than www-data, or other folders; as `systemctl edit` does.
change_the_service() {
    mkdir -p /etc/systemd/system/comedor.service.d
    mv '/tmp/blocks/The service.1' /tmp/done/
    sed "s/maestra/$user/; s#=/srv/.*#=${data_at:-$data} $sessions#" '/tmp/done/The service.1' > /etc/systemd/system/comedor.service.d/override.conf
    run 'The service.2' > /tmp/status
    only_the_page_is_found /tmp/status
}
# What `comedor check` has found: only the set-up page, which is still there.
only_the_page_is_found() {
    expect 'the set-up page is still beside the script' < "$1"
    expect '1 warning' < "$1"
    ! grep -E '(^|: )(error|[0-9]+ errors?)' "$1"
}
# disable HEADING: step 1 of the guide's undo.
disable() {
    case $1 in
    Apache) inline 'sudo a2disconf comedor && sudo apache2ctl configtest && sudo systemctl restart apache2' ;;
    'Apache with FastCGI') inline 'sudo a2disconf comedor-fastcgi && sudo apache2ctl configtest && sudo systemctl restart apache2' ;;
    nginx)
        sed -i '/snippets.comedor/d' /etc/nginx/sites-available/default
        inline 'sudo rm -f /etc/nginx/snippets/comedor.conf /etc/nginx/conf.d/comedor.conf'
        inline 'sudo nginx -t && sudo systemctl reload nginx'
        ;;
    Caddy)
        sed -i '/import comedor/d' /etc/caddy/Caddyfile
        inline 'sudo systemctl restart caddy'
        ;;
    lighttpd) inline 'sudo lighty-disable-mod comedor && sudo systemctl restart lighttpd' ;;
    esac
    soon is_ready
    script_answers
    case $1 in Apache | lighttpd) return ;; esac
    inline 'sudo systemctl disable --now comedor.socket comedor.service'
}

# /tmp/next.deb: a newer version of the package
next_version() {
    rm -rf /tmp/next
    dpkg-deb -R "$PACKAGE" /tmp/next
    sed -i 's/^Version: .*/&.1/' /tmp/next/DEBIAN/control
    dpkg-deb --root-owner-group -b /tmp/next /tmp/next.deb > /dev/null
}
