# Two schools with the same path on one server: only the one that is named gets comedor, and nobody sees the code of the
# other, whose site has a ProxyPassMatch.
. tests/machines/server.sh

lay_out php=fpm server="<VirtualHost *:80>
    ServerName other.example
    DocumentRoot /var/www/other
    ProxyPassMatch \"^/(.*\.php)\$\" \"unix:/run/php/$fpm.sock|fcgi://other/var/www/other\"
</VirtualHost>" also='
    mkdir /var/www/other
    cp -r $application /var/www/other
    sed -i s/colegio/otro/ /var/www/other/entreaulas/login.php
    cp -r $data/Centros/colegio $data/Centros/otro'
install_package
state > /tmp/before
other() { host=other.example "$@"; }
touch /tmp/running
while [ -e /tmp/running ]; do curl -s -m 60 http://other.example/entreaulas/api/comedor.php; done > /tmp/seen &
set_up 0
comedor_answers
for name in SCHOOL.example school.example:80 school.example.; do
    curl -s -m 60 -H "Host: $name" 'http://school.example/entreaulas/api/comedor.php' | expect '{"success":false'
done
# The dot of the name is no pattern.
curl -s -m 60 -H 'Host: schoolxexample' http://school.example/entreaulas/api/comedor.php | expect 'OLD PHP SCRIPT'
other script_answers
address=http://other.example/entreaulas/ set_up 1
comedor setup --undo
script_answers
address=http://other.example/entreaulas/ set_up 1
expect ProxyPassMatch < /tmp/output
other script_answers
rm /tmp/running
wait $!
grep -F '<?php' /tmp/seen && exit 1
unchanged
