package registry

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Run is the program. It parses flags from args, serves until SIGTERM or SIGINT, and returns the
// exit code.
func Run(args []string) int {
	flags := flag.NewFlagSet("registry", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:5000", "host:port to serve on")
	data := flags.String("data", "", "folder for blobs and manifests; created when absent (required)")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *data == "" {
		fmt.Fprintln(os.Stderr, "registry: --data is required: name a folder for blobs and manifests")
		return 2
	}
	if err := serve(*listen, *data); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		return 1
	}

	return 0
}

func serve(listen, data string) error {
	handler, err := newHandler(data)
	if err != nil {
		return err
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	server := &http.Server{Addr: listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()

	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", listen, err)
	}

	return nil
}

// newHandler returns a registry whose blobs and manifests are in dir and survive a restart.
func newHandler(dir string) (http.Handler, error) {
	blobs := filepath.Join(dir, "blobs")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder for blobs: %w", err)
	}

	inner := registry.New(
		registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)),
		registry.WithReferrersSupport(true),
		registry.Logger(log.New(os.Stderr, "", log.LstdFlags|log.Lmicroseconds)),
	)

	keeper := &manifestKeeper{next: inner, dir: filepath.Join(dir, "manifests")}
	if err := keeper.restore(); err != nil {
		return nil, err
	}

	return keeper, nil
}
