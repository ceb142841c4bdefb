package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// waitTimeout is the default of --timeout: the default progress deadline of a
// Package.
const waitTimeout = 10 * time.Minute

type installCommand struct {
	streams    genericiooptions.IOStreams
	connection *connection
	registry   registryFlags

	cluster   bool
	component string
	config    string
	wait      bool
	timeout   time.Duration
	yes       bool
	// refine is that of following.
	refine func(context.Context, progress.Snapshot) progress.Snapshot

	adopt bool

	changesComponent bool
}

func newInstall(streams genericiooptions.IOStreams, dial dialer) *cobra.Command {
	c := installCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "install IMAGE [NAME]",
		Short: "Install or change a package, and watch its rollout",
		Long: `Install a package image, and watch it being rolled out phase by phase until it is available.

This creates a Package in the namespace, or with --cluster a ClusterPackage. NAME is the last
part of the image's name where it is not given. A package of that name that exists is changed
to this image; its configuration and component stay as they are where no flag names them.
What would be another package, by another repository or by an image without a tag, is asked
for, or wants --yes. What has failed of the package is tried again at once.

Exits with 1 when the package does not become available, and says what it waits for. An
interrupt ends the watching, not the rollout.`,
		Example: `  # Into the namespace shop, with a configuration
  kubectl package install registry.example.com/web:v1.2.0 -n shop --config web.yaml

  # Into the cluster, under a name of your own
  kubectl package install registry.example.com/cert-operator:v1.2.0 cert --cluster`,
		Args:              takes("IMAGE", "[NAME]"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.changesComponent = cmd.Flags().Changed("component")
			want, err := c.wanted(args)
			if err != nil {
				return usageError(cmd, err)
			}
			return c.run(cmd.Context(), want)
		},
	}
	c.connection = newConnection(cmd, streams, dial)
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "install a ClusterPackage")
	cmd.Flags().StringVar(&c.component, "component", "", "the component to install of a package that has several")
	cmd.Flags().StringVar(&c.config, "config", "", "YAML or JSON `file` with the package's configuration, - for standard input")
	cmd.Flags().BoolVar(&c.adopt, "adopt", false, adoptUsage)
	cmd.Flags().BoolVar(&c.wait, "wait", true, "watch the rollout until the package is available")
	addTimeout(cmd, &c.timeout, waitTimeout, "how long to wait")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	c.registry.add(cmd)
	return cmd
}

// adoptUsage describes --adopt of install and plan.
const adoptUsage = "take over objects that exist already and that nothing controls (spec.collisionProtection: IfNoController)"

// wanted reads the arguments: the name of the package with its scope, and the
// image in it.
func (c *installCommand) wanted(args []string) (wantedPackage, error) {
	w := wantedPackage{image: args[0], component: c.component, changesComponent: c.changesComponent, adopts: c.adopt}
	ref, err := imageReference("IMAGE", args[0])
	if err != nil {
		return w, err
	}
	w.name = cluster.Name{Name: baseName(ref)}
	if len(args) > 1 {
		if w.name, err = cluster.ParseName(args[1]); err != nil {
			return w, err
		}
	}
	switch {
	case c.cluster && w.name.Scope == corev1alpha1.ScopeNamespaced:
		return w, fmt.Errorf("%s and --cluster contradict each other", args[1])
	case c.cluster:
		w.name.Scope = corev1alpha1.ScopeCluster
	case w.name.Scope == "":
		w.name.Scope = corev1alpha1.ScopeNamespaced
	}
	if problems := validation.IsDNS1123Subdomain(w.name.Name); len(problems) > 0 {
		return w, fmt.Errorf("NAME %q cannot be the name of a package: %s", w.name.Name, problems[0])
	}
	return w, nil
}

// baseName is the last part of an image's path, as a name of Kubernetes.
func baseName(ref name.Reference) string {
	path := ref.Context().RepositoryStr()
	base := path[strings.LastIndex(path, "/")+1:]
	return strings.ReplaceAll(base, "_", "-")
}

func (c *installCommand) run(ctx context.Context, want wantedPackage) error {
	if c.config != "" {
		config, err := readConfig(c.config, c.streams.In)
		if err != nil {
			return err
		}
		if want.config, err = json.Marshal(config); err != nil {
			return fmt.Errorf("the configuration is no JSON: %w", err)
		}
	}
	cl, err := c.connection.connect()
	if err != nil {
		return err
	}
	target := cl.Target(want.name.Scope, want.name.Name)
	want.beforeCreate = func(ctx context.Context) error { return c.checkImage(ctx, want) }
	want.beforeChange = func(old *corev1alpha1.PackageSpec) error { return c.confirmImage(target, old, want.image) }
	done, err := applyPackage(ctx, cl, target, want)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.streams.Out, terminal.Line(target.String()+" "+done.what))
	if !c.wait {
		return nil
	}
	return c.follow(ctx, cl, target, done)
}

func (c *installCommand) follow(ctx context.Context, cl *cluster.Cluster, target progress.Target, done applied) error {
	title := "Installing " + target.String()
	before := progress.State{Target: target}
	if done.before != nil {
		title = "Updating " + target.String()
		before = progress.Before(progress.Snapshot{Target: target, Package: done.before})
	}
	judge := &progress.Install{Retry: done.retry}
	state, verdict, elapsed, err := following{
		cluster: cl, target: target, uid: done.pkg.GetUID(), judge: judge.Judge,
		view: newView(c.streams, title, before), timeout: c.timeout, refine: c.refine,
	}.run(ctx)
	if err := ended(target.String()+" is not available", target, state, verdict, elapsed, err); err != nil {
		return err
	}
	what := strings.TrimSpace(state.Package + " " + state.Version)
	if what != "" {
		what += ", "
	}
	fmt.Fprintf(c.streams.Out, "%s is available: %srevision %d, after %s\n",
		terminal.Line(target.String()), what, state.Revision, progress.Elapsed(elapsed))
	return nil
}
