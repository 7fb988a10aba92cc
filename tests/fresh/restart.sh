# On the fresh machine, booted again: the service answers, has the saved menu, and can be removed.
set -euo pipefail
cd /home/teacher/comedor
. tests/machines/guide.sh
blocks docs/install.md

as=(runuser -u teacher -- env HOME=/home/teacher)
answers /login.php ''
log_in ''
answers /api/comedor.php '"success":true'
curl -sf -b "PHPSESSID=$id" 'http://localhost/api/comedor.php?action=get_menu&aulario=aula1&date=2026-11-20&menu=basal' |
    grep Lentejas
inline 'sudo journalctl -u comedor' | grep Started
disable_fastcgi
run 'Undo.2'
answers /api/comedor.php 'OLD PHP SCRIPT'
