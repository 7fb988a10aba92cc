site=https://school.example
school=$site/entreaulas
# The file "password" has the password alone; only its owner may read it, and the file "session", which is a login.
umask 077
IFS= read -r password < password
printf %s "$password" |
    curl -sS -c - -o login.html --data-urlencode user=… --data-urlencode password@- "$site/_login.php" |
    grep PHPSESSID > session
# With --retry, curl repeats a request that is BUSY, after the time of Retry-After, but also one that may have been
# stored (another 5xx, no answer): only for reads. On standard output, answers before a retry would stay.
curl -sS -b session --retry 2 -o menu.json "$school/api/comedor.php?action=get_menu&aulario=aula1&menu=basal" &&
    cat menu.json && # without an answer, it is that of an earlier run
    grep -Eq '"menu_type" *: *"basal"' menu.json
