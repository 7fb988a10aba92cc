# Two applications on one server, with the same session name, session folder, centre and aulario. comedor is set up for the
# first as the guide says, under the heading in $HEADINGS: a request for the other one touches neither. Then the section on
# two applications leads to both. In two sites, and in two folders of one site (not under Apache with FastCGI).
. lab/machines/server.sh
blocks docs/install.md
section='Two applications on one server'
mapfile -t headings <<< "${HEADINGS%$'\n'}"
heading=${headings[0]}
echo '127.0.0.1 otra.example' >> /etc/hosts

# The other application, as the guide names it
folder=/var/www/otra/entreaulas path=/entreaulas name=otra.example
address() { echo "http://$host$path"; }
other() { host=$name "$@"; }
first() { host=school.example path=/entreaulas "$@"; }
host=school.example

lay_out_two() {
    case $heading in
    Apache | 'Apache with FastCGI')
        lay_out php=fpm server='<VirtualHost *:80>
            ServerName otra.example
            # Lines of the other site
            DocumentRoot /var/www/otra
        </VirtualHost>'
        ;;
    nginx)
        lay_out web=nginx php=fpm server="
        server {
            listen 80;
            # Lines of the other site
            server_name otra.example;
            root /var/www/otra;
            location ~ \.php\$ {
                include snippets/fastcgi-php.conf;
                fastcgi_pass unix:/run/php/$fpm.sock;
            }
        }"
        ;;
    esac
    application $folder entreaulas /DATA/otra www-data
}
# in_other_site LINES FILE: writes them into the configuration of its site.
in_other_site() {
    printf '%s\n' "$1" > /tmp/lines
    sed -i '/# Lines of the other site/r /tmp/lines' "$2"
}

# Names and content of each file of both
data() { find /DATA -type f -exec sha256sum {} + | sort; }
# The program refuses requests for the other application, and its log names both scripts.
other_is_refused() {
    data > /tmp/data
    other log_in
    for action in get_menu_types get_menu; do
        other api $action > /tmp/answer
        expect 'comedor answers for another script of this server' < /tmp/answer
        expect '"code":"INTERNAL_ERROR"' < /tmp/answer
    done
    other save Sopa > /tmp/answer
    expect '"code":"INTERNAL_ERROR"' < /tmp/answer
    data | diff /tmp/data -
    { cat /var/log/apache2/*.log /var/log/nginx/*.log; journalctl -u comedor; } 2> /dev/null > /tmp/log
    expect "the request is for $folder/api/comedor.php, and COMEDOR_SCRIPT is $application/api/comedor.php" < /tmp/log
}
# Both applications save and read their own menus.
both_work() {
    first comedor_answers
    cp $data/Centros/colegio/Aularios/aula1/Comedor/2026-11/20/_datos.json /tmp/first
    other comedor_answers
    cmp /tmp/first $data/Centros/colegio/Aularios/aula1/Comedor/2026-11/20/_datos.json
    [ -e /DATA/otra/Centros/colegio/Aularios/aula1/Comedor/2026-11/20/_datos.json ]
}
settings=/etc/comedor/comedor-otra.conf
# The second service: commands of the section from its third block on.
second_service() {
    run "$section.3"
    install -m 600 "/tmp/blocks/$section.4" $settings
    # As `systemctl edit` does
    mkdir -p /etc/systemd/system/comedor-otra.service.d
    mv "/tmp/blocks/$section.5" /etc/systemd/system/comedor-otra.service.d/override.conf
    run "$section.6" > /tmp/status
    expect 'no problems found' < /tmp/status
}
# Without the lines of the other application the settings of the first one, which is enabled for it too, refuse it.
undo_second_service() {
    restart
    other log_in
    other api get_menu_types | expect '"code":"INTERNAL_ERROR"'
    run "$section.9"
    first comedor_answers
    [ -z "$(find /etc -name '*comedor-otra*')" ]
}
expect_no_problems() { expect 'no problems found' < "$1"; }

lay_out_two
follow_the_guide "$heading" "${heading% with FastCGI}"
first comedor_answers
site=/etc/apache2/sites-available/000-default.conf
case $heading in
Apache)
    other_is_refused
    in_other_site "$(cat "/tmp/blocks/$section.1")" $site
    run "$section.2" > /tmp/checked
    expect_no_problems /tmp/checked
    both_work
    # In two folders of one site
    sed "s#/var/www/otra/entreaulas#/var/www/html/otra#; s#/DATA/otra#/DATA/tercera#" "/tmp/blocks/$section.1" > /tmp/settings
    application /var/www/html/otra entreaulas /DATA/tercera www-data
    folder=/var/www/html/otra
    third() { host=school.example path=/otra "$@"; }
    # In a <Location> they are for the script alone.
    { echo '<Location "/otra/">' && cat /tmp/settings && echo '</Location>'; } > /tmp/lines
    sed -i '/ServerName school.example/r /tmp/lines' $site
    restart
    third log_in
    data > /tmp/data
    third save Sopa > /tmp/answer
    expect '"code":"INTERNAL_ERROR"' < /tmp/answer
    data | diff /tmp/data -
    expect 'is set for the script' < /var/log/apache2/error.log
    sed -i 's#<Location "/otra/">#<LocationMatch "^(/comedor-cgi)?/otra/">#; s#</Location>#</LocationMatch>#' $site
    restart
    third comedor_answers
    both_work
    [ -e /DATA/tercera/Centros/colegio/Aularios/aula1/Comedor/2026-11/20/_datos.json ]
    ;;
'Apache with FastCGI')
    other_is_refused
    second_service
    run "$section.7"
    in_other_site 'Include conf-available/comedor-otra.conf' $site
    inline 'sudo apache2ctl configtest && sudo systemctl restart apache2'
    both_work
    sed -i '/comedor-otra/d' $site
    undo_second_service
    ;;
nginx)
    # The line is in the first site only.
    other script_answers
    site=/etc/nginx/sites-available/default
    in_other_site '            include snippets/comedor.conf;' $site
    restart
    other_is_refused
    second_service
    sed -i 's#^  *include snippets/comedor.conf#include snippets/comedor-otra.conf#' $site
    run "$section.8"
    # After a reload old processes of nginx can answer once more.
    restart
    both_work
    # The undo of its lines, which the next part writes again
    cp $site /tmp/site
    sed -i '/comedor-otra/d' $site
    restart
    other script_answers
    cp /tmp/site $site
    # In two folders of one site
    application /var/www/html/otra entreaulas /DATA/otra www-data
    sed -i 's#\(SCRIPT=\).*#\1/var/www/html/otra/api/comedor.php#' $settings
    systemctl restart comedor-otra.service
    sed -i '/comedor-otra/d; s#^include snippets/comedor.conf;#&\nlocation /otra/api/ { include snippets/comedor-otra.conf; }#' $site
    restart
    name=school.example path=/otra
    both_work
    sed -i '/comedor-otra/d' $site
    undo_second_service
    ;;
esac
