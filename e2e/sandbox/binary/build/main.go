// Command build makes sure that the sandbox's binary exists for the checkout in
// the current folder and prints the folder that holds it. Progress goes to
// standard error.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"lockstep.run/lockstep/e2e/sandbox/binary"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	dir, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}

func run(ctx context.Context) (string, error) {
	repository, err := binary.Repository(".")
	if err != nil {
		return "", err
	}
	return binary.Ensure(ctx, repository, os.Stderr)
}
