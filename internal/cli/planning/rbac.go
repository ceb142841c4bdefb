package planning

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/permissions"
)

// rbacCommand prints the rights of a package's account.
type rbacCommand struct {
	Planner
	account string
	from    int64
}

func newRBAC(on command.Command) *cobra.Command {
	c := &rbacCommand{Planner: Planner{Command: on}}
	cmd := &cobra.Command{
		Use:   "rbac PACKAGE[/VERSION]|SOURCE|IMAGE [NAME]",
		Short: "Print the smallest roles for the service account of a package",
		Long: `Print the smallest Roles and ClusterRoles with which the service account of a package can install,
correct, upgrade and delete it, and their bindings: to create the objects of the package by kind,
to patch and delete them by name, and what the API server asks of who writes the roles and
admission policies among them. Nothing is written; kubectl apply -f - does that.

Arguments and flags say which package, as those of plan do. The package is loaded as the manager would
load it, so that another configuration or version may need others. The roles of an installed
package serve its upgrade, too: the objects of its newest revision, or of the one that --from
names, may be corrected and deleted.

Rights in a namespace that the package brings are in the ClusterRole: a Role could not be made
before it. What reads for the package is the manager, with rights of its own.`,
		Example: `  # An account for a package that is to be installed
  kubectl create serviceaccount deployer -n shop
  kubectl package rbac shop.example.com shop -n shop --account deployer | kubectl apply -f -
  kubectl package install shop.example.com shop -n shop --service-account deployer

  # What an upgrade needs
  kubectl package rbac package/shop -n shop --version 2.0.0 | kubectl apply -f -`,
		Args:              command.Takes("SOURCE|IMAGE", "[NAME]"),
		ValidArgsFunction: c.CompleteSource(2),
	}
	c.complete(cmd, c.print, command.Positive("from", &c.from))
	cmd.Flags().StringVar(&c.account, "account", "", "the `ServiceAccount` to bind the roles to; that of the package where it is not given")
	cmd.Flags().Int64Var(&c.from, "from", 0, "the `revision` that is replaced; the newest of an installed package where it is not given")
	return cmd
}

func (c *rbacCommand) print(ctx context.Context, cl *cluster.Cluster, planned *Planned) error {
	if planned.Pkg.PackageSpec().TargetRef != nil {
		return fmt.Errorf("the objects of %s are in another cluster, where the user of the kubeconfig writes them, not a service account", planned.Target)
	}
	request := permissions.Request{Namespace: planned.Target.Namespace, Resource: func(kind schema.GroupKind) string {
		mapping, err := planned.Client.RESTMapper().RESTMapping(kind)
		if err != nil {
			return ""
		}
		return mapping.Resource.Resource
	}}
	var err error
	if request.Objects, err = planned.objects(); err != nil {
		return err
	}
	if request.Former, err = c.former(ctx, cl, planned); err != nil {
		return err
	}
	roles := permissions.Roles(permissions.Needed(request), planned.rolesName(), c.subject(planned))
	if len(roles) == 0 {
		fmt.Fprintf(c.Streams.ErrOut, "%s has no objects, and needs no rights\n", planned.Target)
	}
	out := &c.Output
	if !out.Wanted() {
		out = output.YAML()
	}
	return out.Print(ctx, c.Streams.Out, output.List{Items: roles})
}

// rolesName is the name of the roles: that of the package behind its kind, since both kinds may have roles in one namespace.
func (p *Planned) rolesName() string {
	return strings.ToLower(p.Target.Scope.Kind("Package")) + "-" + p.Target.Name
}

// objects are those of the package.
func (p *Planned) objects() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, phase := range p.Loaded.Phases {
		for _, stored := range phase.Objects {
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(stored.Object.Raw); err != nil {
				return nil, fmt.Errorf("phase %s: %w", phase.Name, err)
			}
			all = append(all, u)
		}
	}
	return all, nil
}

// former are the objects of the revision that is replaced.
func (c *rbacCommand) former(ctx context.Context, cl *cluster.Cluster, p *Planned) ([]*unstructured.Unstructured, error) {
	if p.Before == nil {
		if c.from > 0 {
			return nil, fmt.Errorf("%s is not installed, and has no revision %d", p.Target, c.from)
		}
		return nil, nil
	}
	rollout, err := cl.Rollout(ctx, cluster.Name{Scope: p.Target.Scope, Name: p.Target.Name})
	if err != nil {
		if c.from == 0 && p.Before.PackageStatus().Revision == 0 {
			return nil, nil
		}
		return nil, err
	}
	set := rollout.Current()
	if c.from > 0 {
		if set, err = rollout.Revision(c.from); err != nil {
			return nil, err
		}
	}
	if set == nil {
		return nil, nil
	}
	stored, sealed, err := cl.Objects(ctx, set)
	if err != nil {
		return nil, err
	}
	if sealed {
		fmt.Fprintf(c.Streams.ErrOut, "Warning: revision %d keeps objects with sensitive values in Secrets, which are not read: where an upgrade drops one of these, add the right to delete it\n", set.ObjectSetSpec().Revision)
	}
	var all []*unstructured.Unstructured
	for _, o := range stored {
		all = append(all, &unstructured.Unstructured{Object: o.Value})
	}
	return all, nil
}

// subject is the account that the roles are bound to; nil where none is named.
func (c *rbacCommand) subject(p *Planned) *rbacv1.Subject {
	account := objects.Account{Namespace: p.home(), Name: cmp.Or(c.account, p.Pkg.PackageSpec().ServiceAccountName)}
	if account.Name == "" {
		fmt.Fprintln(c.Streams.ErrOut, "Warning: the package names no service account, so the roles are bound to none: name it by --account, and at the installation by --service-account")
		return nil
	}
	return &rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
}
