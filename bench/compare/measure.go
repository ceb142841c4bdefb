package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"lockstep.run/lockstep/e2e/sandbox"
)

const (
	namespace = "compare"
	// quiet is the time without requests of a user that ends a step.
	quiet = 3 * time.Second
)

// control is a control plane for one user.
type control struct {
	*sandbox.Sandbox
	audit      *sandbox.Audit
	user       string
	kubeconfig string
	dir        string
}

// newControl starts a control plane with a user who has all rights.
func newControl(ctx context.Context, user string) (*control, error) {
	sb, err := sandbox.Run(ctx, sandbox.WithoutNodes())
	if err != nil {
		return nil, err
	}

	c := &control{Sandbox: sb, user: user}
	if c.kubeconfig, err = sb.UserKubeconfig(user, "system:masters"); err == nil {
		c.audit, err = sb.Audit()
	}
	if err == nil {
		c.dir, err = os.MkdirTemp("", "compare-")
	}
	if err == nil {
		_, err = sb.Kubectl(ctx, "create", "namespace", namespace)
	}
	if err != nil {
		c.stop()
		return nil, err
	}

	return c, nil
}

func (c *control) stop() {
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
	_ = c.Stop()
}

// measure returns the user's requests from the start of act until the user was quiet, and the time
// from the first to the last of them.
func (c *control) measure(ctx context.Context, act func() error) (figure, error) {
	mark, err := c.audit.Mark(ctx)
	if err != nil {
		return figure{}, err
	}

	begin := time.Now()
	if err := act(); err != nil {
		return figure{}, err
	}

	entries, err := c.audit.Settled(ctx, mark, quiet, sandbox.ByUser(c.user), ordinary)
	if err != nil {
		return figure{}, err
	}

	f := figure{requests: len(entries)}
	for _, e := range entries {
		f.seconds = max(f.seconds, e.Done.Sub(begin).Seconds())
	}

	return f, nil
}

// ordinary reports whether a request is neither a watch nor about a Lease.
func ordinary(e sandbox.Entry) bool { return e.Verb != "watch" && e.Object.Resource != "leases" }

// command runs a program as the user.
func (c *control) command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HOME="+c.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return nil
}

// drift changes an object as the administrator.
func (c *control) drift(ctx context.Context) error {
	_, err := c.Kubectl(ctx, "-n", namespace, "patch", "configmap", "object-0001", "--type", "merge", "-p", `{"data": {"value": "drifted"}}`)
	return err
}

// drifted reports whether the object has drifted.
func (c *control) drifted(ctx context.Context) (bool, error) {
	out, err := c.Kubectl(ctx, "-n", namespace, "get", "configmap", "object-0001", "-o", "jsonpath={.data.value}")
	return out == "drifted", err
}

// configMaps is the YAML of ConfigMaps of about 300 bytes. The first one has its own value.
func configMaps(objects int, first string) string {
	var b strings.Builder
	for i := range objects {
		value := "one"
		if i == 0 {
			value = first
		}
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: object-%04d\n  namespace: %s\ndata:\n  value: %s\n  text: %s\n", i, namespace, value, strings.Repeat("x", 200))
	}
	return b.String()
}
