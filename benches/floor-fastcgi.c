/* The floor of FastCGI: processes that read the body and answer with SIZE bytes. Eight, as many as PHP-FPM has; with
   KEPT one for each connection, since a kept connection occupies one. */
#include <fcgiapp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEXT(number) #number
#define LENGTH(size) TEXT(size)

static const char head[] = "Content-Type: application/json; charset=utf-8\r\n"
                           "Content-Length: " LENGTH(SIZE) "\r\n\r\n";
static char body[65536], answer[sizeof head - 1 + SIZE];

int main(void) {
    memcpy(answer, head, sizeof head - 1);
    memset(answer + sizeof head - 1, ' ', SIZE);
    FCGX_Request request;
    if (FCGX_Init() != 0 || FCGX_InitRequest(&request, 0, 0) != 0)
        return 1;
    signal(SIGCHLD, SIG_IGN);
#ifdef KEPT
    /* libfcgi then reads from this connection, until it ends. */
    request.keepConnection = 1;
    while ((request.ipcFd = accept(0, NULL, NULL)) >= 0 && fork() != 0)
        close(request.ipcFd);
#else
    for (int process = 1; process < 8 && fork() != 0; process++)
        ;
#endif
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    while (FCGX_Accept_r(&request) == 0) {
        while (FCGX_GetStr(body, sizeof body, request.in) > 0)
            ;
        FCGX_PutStr(answer, sizeof answer, request.out);
    }
    return 1;
}
