package components

import (
	"io"
	"os"
	"strconv"
	"syscall"
)

// ParentFDEnv names the environment variable that carries the number of an
// inherited file descriptor: the reading end of a pipe whose writing end only
// the supervisor holds.
const ParentFDEnv = "LOCKSTEP_SANDBOX_PARENT_FD"

// WatchParent kills this process as soon as the pipe named by [ParentFDEnv]
// closes, which the kernel does for a supervisor that was killed too. It does
// nothing where the variable is unset, and returns at once.
func WatchParent() {
	fd, err := strconv.Atoi(os.Getenv(ParentFDEnv))
	if err != nil {
		return
	}
	os.Unsetenv(ParentFDEnv)
	syscall.CloseOnExec(fd)
	pipe := os.NewFile(uintptr(fd), "supervisor")
	go func() {
		_, _ = io.Copy(io.Discard, pipe)
		// The data is thrown away with the supervisor: nothing is worth a slow stop.
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}()
}
