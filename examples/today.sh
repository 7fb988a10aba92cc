school=https://school.example
curl -sS -c cookies -o login.html -d 'user=…' -d 'password=…' "$school/login.php"
# With --retry, curl repeats a request that is BUSY, after the time of Retry-After, but also one that may have been
# stored (another 5xx, no answer): only for reads.
curl -sS -b cookies --retry 2 "$school/api/comedor.php?action=get_menu&aulario=aula1"
