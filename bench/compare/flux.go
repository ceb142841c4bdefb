package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// flux runs the steps with kustomize-controller, and a server of artifacts instead of
// source-controller. Its interval is an hour, so each step requests a reconcile with the annotation
// of flux reconcile. Otherwise drift would stay until the interval is over.
func flux(ctx context.Context, objects int) (map[string]figure, error) {
	program, err := build(ctx, "kustomize-controller", toolsModule, controller)
	if err != nil {
		return nil, err
	}
	definitions, err := fluxDefinitions(ctx)
	if err != nil {
		return nil, err
	}
	c, err := newControl(ctx, "flux")
	if err != nil {
		return nil, err
	}
	defer c.stop()
	for _, file := range definitions {
		if _, err := c.Kubectl(ctx, "apply", "--server-side", "-f", file); err != nil {
			return nil, err
		}
	}
	if _, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"); err != nil {
		return nil, err
	}
	source, err := serveArtifacts()
	if err != nil {
		return nil, err
	}
	defer source.server.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end, err := c.startFlux(ctx, program)
	if err != nil {
		return nil, err
	}
	defer end()

	out := map[string]figure{}
	for _, step := range []struct{ name, first string }{{steps[0], "one"}, {steps[1], "two"}} {
		if out[step.name], err = c.measure(ctx, func() error { return c.offer(ctx, source, configMaps(objects, step.first)) }); err != nil {
			return nil, err
		}
	}
	if out[steps[2]], err = c.measure(ctx, func() error { return c.reconcile(ctx) }); err != nil {
		return nil, err
	}
	if err := c.drift(ctx); err != nil {
		return nil, err
	}
	if out[steps[3]], err = c.measure(ctx, func() error { return c.reconcile(ctx) }); err != nil {
		return nil, err
	}
	if still, err := c.drifted(ctx); err != nil || still {
		return nil, errors.Join(err, errors.New("the drift stays after a reconcile"))
	}
	out[steps[4]], err = c.measure(ctx, func() error {
		_, err := c.Kubectl(ctx, "-n", namespace, "delete", "kustomization", "compare", "--timeout=10m")
		return err
	})
	return out, err
}

// startFlux starts the controller as the user; end stops it.
func (c *control) startFlux(ctx context.Context, program string) (end func(), err error) {
	log, err := os.Create(filepath.Join(c.dir, "controller.log"))
	if err != nil {
		return nil, err
	}

	cmd := exec.CommandContext(ctx, program, "--watch-all-namespaces", "--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0", "--log-level=info")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "RUNTIME_NAMESPACE="+namespace, "HOME="+c.dir, "TMPDIR="+c.dir)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}

	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	}, nil
}

// offer makes objects the content of the source, and waits until they are applied.
func (c *control) offer(ctx context.Context, source *artifacts, objects string) error {
	revision, digest, err := source.set(objects)
	if err != nil {
		return err
	}

	manifest := filepath.Join(c.dir, "flux.yaml")
	text := fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: compare, namespace: %[1]s}
spec: {interval: 1h, url: https://example.org/compare}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: compare, namespace: %[1]s}
spec: {interval: 1h, prune: true, path: ./, sourceRef: {kind: GitRepository, name: compare}}
`, namespace)

	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "apply", "-f", manifest); err != nil {
		return err
	}

	status := fmt.Sprintf(`{"status": {"observedGeneration": 1, "artifact": {"digest": "sha256:%s", "lastUpdateTime": %q, "path": "compare.tar.gz", "revision": %q, "url": %q, "size": 1},
		"conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored", "lastTransitionTime": %[2]q, "observedGeneration": 1}]}}`,
		digest, time.Now().UTC().Format(time.RFC3339), revision, source.url)

	if _, err := c.Kubectl(ctx, "-n", namespace, "patch", "gitrepository", "compare", "--subresource=status", "--type=merge", "-p", status); err != nil {
		return err
	}

	_, err = c.Kubectl(ctx, "-n", namespace, "wait", "kustomization/compare", "--for=jsonpath={.status.lastAppliedRevision}="+revision, "--timeout=5m")
	return err
}

// reconcile requests a reconcile, and waits until it is complete.
func (c *control) reconcile(ctx context.Context) error {
	token := time.Now().Format(time.RFC3339Nano)
	if _, err := c.Kubectl(ctx, "-n", namespace, "annotate", "--overwrite", "kustomization/compare", "reconcile.fluxcd.io/requestedAt="+token); err != nil {
		return err
	}
	_, err := c.Kubectl(ctx, "-n", namespace, "wait", "kustomization/compare", "--for=jsonpath={.status.lastHandledReconcileAt}="+token, "--timeout=5m")
	return err
}

// artifacts serves the content of a source like source-controller.
type artifacts struct {
	server *http.Server
	url    string

	mu      sync.Mutex
	archive []byte
	number  int
}

func serveArtifacts() (*artifacts, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &artifacts{url: "http://" + listener.Addr().String() + "/compare.tar.gz"}
	a.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		_, _ = w.Write(a.archive)
	})}
	go func() { _ = a.server.Serve(listener) }()
	return a, nil
}

// set replaces the content and returns its revision and digest.
func (a *artifacts) set(objects string) (revision, digest string, err error) {
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	err = errors.Join(
		archive.WriteHeader(&tar.Header{Name: "objects.yaml", Mode: 0o644, Size: int64(len(objects))}),
		func() error { _, err := archive.Write([]byte(objects)); return err }(),
		archive.Close(), zipped.Close())
	a.mu.Lock()
	defer a.mu.Unlock()
	a.archive = b.Bytes()
	a.number++
	return fmt.Sprintf("main@sha1:%040d", a.number), fmt.Sprintf("%x", sha256.Sum256(b.Bytes())), err
}
