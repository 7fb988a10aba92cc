# Two schools with the same path on one server: comedor is enabled in the site of one, as the guide says, and nobody sees
# the code of the other's script.
. lab/machines/server.sh
blocks docs/install.md

pass='ProxyPassMatch "^/(.*\.php)$" "unix:/run/php/'$fpm'.sock|fcgi://'
lay_out php=fpm site="${pass}school/var/www/html\"" server="<VirtualHost *:80>
    ServerName other.example
    DocumentRoot /var/www/other
    ${pass}other/var/www/other\"
</VirtualHost>" also='
    mkdir /var/www/other
    cp -r $application /var/www/other
    sed -i s/colegio/otro/ /var/www/other/entreaulas/login.php
    cp -a $data/Centros/colegio $data/Centros/otro'
install_package
open_page Apache
paste '3. Configure.1' /tmp/values
check_settings
other() { host=other.example "$@"; }
touch /tmp/running
# Apache refuses connections while it restarts.
while [ -e /tmp/running ]; do curl -s -m 60 http://other.example/entreaulas/api/comedor.php || true; done > /tmp/seen &
a2enmod -q cgi actions
line='Include conf-available/comedor.conf'
grep -qF "\`$line\`" docs/install.md
sed -i "s#ServerName school.*#&\n$line#" /etc/apache2/sites-available/000-default.conf
restart
try_comedor
comedor_answers
other script_answers
# Debian serves the folder of the program in each site.
at_cgi_bin() { curl -so /dev/null -m 60 -w '%{http_code}' "http://$1/cgi-bin/comedor" | expect "$2"; }
at_cgi_bin school.example 403
at_cgi_bin other.example 400
inline 'sudo a2disconf serve-cgi-bin && sudo apache2ctl configtest && sudo systemctl restart apache2'
at_cgi_bin school.example 403
at_cgi_bin other.example 404
comedor_answers
sed -i '/^Include/d' /etc/apache2/sites-available/000-default.conf
restart
script_reads_the_menu
other script_answers
rm /tmp/running
wait $!
! grep -F '<?php' /tmp/seen
