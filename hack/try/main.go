package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"lockstep.run/lockstep/e2e/sandbox/binary"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("interrupted; ./task try continues from here, ./task sandbox:down -- --name %s ends it", sandboxName)
		}
		fmt.Fprintln(os.Stderr, "try:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	begin := time.Now()
	repository, err := binary.Repository(".")
	if err != nil {
		return err
	}
	if err := os.Chdir(repository); err != nil {
		return err
	}

	bin, err := binary.Ensure(ctx, repository, os.Stderr)
	if err != nil {
		return err
	}

	t := &trial{
		repository: repository, sandboxBin: bin,
		dir: filepath.Join(filepath.Dir(filepath.Dir(bin)), "try"),
	}

	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return fmt.Errorf("creating the folder for the trial: %w", err)
	}

	for _, step := range []func(context.Context) error{t.build, t.startSandbox, t.installConfig, t.startManager, t.pushExample, t.installExample} {
		if err := step(ctx); err != nil {
			return err
		}
	}

	t.whatNext(time.Since(begin))
	return nil
}
