package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// helm runs the steps with Helm. Only an upgrade corrects drift, and it fails with a conflict of
// field managers unless it is forced.
func helm(ctx context.Context, objects int) (map[string]figure, error) {
	program, err := build(ctx, "helm", "operate/go.mod", "helm.sh/helm/v4/cmd/helm")
	if err != nil {
		return nil, err
	}

	c, err := newControl(ctx, "helm")
	if err != nil {
		return nil, err
	}

	defer c.stop()
	chart := filepath.Join(c.dir, "chart")
	write := func(first string) error {
		if err := os.MkdirAll(filepath.Join(chart, "templates"), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(chart, "Chart.yaml"), []byte("apiVersion: v2\nname: compare\nversion: 1.0.0\n"), 0o600); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(chart, "templates", "objects.yaml"), []byte(configMaps(objects, first)), 0o600)
	}

	upgrade := []string{"upgrade", "--install", "compare", chart, "-n", namespace, "--wait"}
	out := map[string]figure{}
	for _, step := range []struct{ name, first string }{{steps[0], "one"}, {steps[1], "two"}, {steps[2], "two"}} {
		if err := write(step.first); err != nil {
			return nil, err
		}
		if out[step.name], err = c.measure(ctx, func() error { return c.command(ctx, program, upgrade...) }); err != nil {
			return nil, err
		}
	}

	if err := c.drift(ctx); err != nil {
		return nil, err
	}
	if out[steps[3]], err = c.measure(ctx, func() error { return c.command(ctx, program, append(upgrade, "--force-conflicts")...) }); err != nil {
		return nil, err
	}
	if still, err := c.drifted(ctx); err != nil || still {
		return nil, errors.Join(err, errors.New("the drift stays after an upgrade"))
	}

	out[steps[4]], err = c.measure(ctx, func() error {
		return c.command(ctx, program, "uninstall", "compare", "-n", namespace, "--wait")
	})
	return out, err
}
