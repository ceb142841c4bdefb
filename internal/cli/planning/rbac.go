package planning

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/permissions"
)

// rbacCommand prints the rights of a package's account.
type rbacCommand struct {
	Planner
	account string
	from    int64
}

// newRBAC returns the command rbac.
func newRBAC(on command.Command) *cobra.Command {
	c := &rbacCommand{Planner: Planner{Command: on}}
	cmd := &cobra.Command{
		Use:   "rbac PACKAGE[/VERSION]|SOURCE|IMAGE [NAME]",
		Short: "Print the smallest roles for the service account of a package",
		Long: `Print the smallest Roles and ClusterRoles, with bindings, that the service account of a package needs to
install, correct, upgrade and delete it. To apply them, use kubectl apply -f -. Review the
output: the author of the package chose its needs. Rights beyond its objects lead to warnings.

It takes the arguments of plan. The roles of an installed package also cover its revisions that are not
archived, and the one of --from.

RBAC cannot limit create to names. Rights in a namespace that the package contains are in the ClusterRole.
If the manager has few rights, ClusterRoles let it read the kinds. To write roles, you need the rights they
grant. More: docs/administrate/accounts.md`,
		Example: `  # An account for a new package
  kubectl package rbac shop.example.com shop -n shop --account deployer >roles.yaml
  kubectl apply -f roles.yaml
  kubectl package install shop.example.com shop -n shop --service-account deployer

  # The rights for an upgrade
  kubectl package rbac package/shop -n shop --version 2.0.0`,
		Args:              command.Takes("SOURCE|IMAGE", "[NAME]"),
		ValidArgsFunction: c.CompleteSource(2),
	}

	c.complete(cmd, c.print, command.Positive("from", &c.from))
	cmd.Flags().StringVar(&c.account, "account", "", "bind the roles to this `ServiceAccount` (default: the package's)")
	cmd.Flags().Int64Var(&c.from, "from", 0, "include the rights to go back to this archived `revision`")
	return cmd
}

// print prints the roles as YAML, or in the wanted format. Warnings go to standard error, so that
// the output can be piped to kubectl.
func (c *rbacCommand) print(ctx context.Context, cl *cluster.Cluster, planned *Planned) error {
	if planned.Pkg.PackageSpec().TargetRef != nil {
		return fmt.Errorf("the objects of %s are in another cluster, where the user of the kubeconfig writes them, not a service account", planned.Target)
	}
	if planned.otherScope {
		// The roles of a ClusterPackage grant more, so they are printed only for an explicit name.
		return fmt.Errorf("there is no package of that name in namespace %s, but there is %s: write %s or package/%s", cl.Namespace, planned.Target, planned.Target.Arg(), planned.Target.Name)
	}

	request := permissions.Request{Namespace: planned.Target.Namespace, Released: map[*unstructured.Unstructured]bool{}}
	var err error
	if request.Objects, err = planned.objects(); err != nil {
		return err
	}

	revisions, err := c.revisions(ctx, cl, planned)
	if err != nil {
		return err
	}
	accounts := []string{cmp.Or(c.account, planned.Pkg.PackageSpec().ServiceAccountName)}
	for _, set := range revisions {
		stored, err := c.stored(ctx, cl, set)
		if err != nil {
			return err
		}
		request.Objects = append(request.Objects, stored...)
		accounts = append(accounts, set.ObjectSetSpec().ServiceAccountName)
	}

	for _, u := range request.Objects {
		// An object that is kept at deletion needs no right to delete it.
		request.Released[u] = u.GetAnnotations()[corev1alpha1.DeletionPolicyAnnotation] == corev1alpha1.DeletionPolicyKeep
	}

	if err := planned.served(&request); err != nil {
		return cl.Explain("cannot determine the rights that "+planned.Target.String()+" needs", err)
	}
	scopes, warnings := permissions.Needed(request)
	for _, w := range planned.Loaded.Warnings {
		planned.warnings = append(planned.warnings, w.String())
	}

	// Both kinds of packages can have roles in one namespace.
	name := strings.ToLower(planned.Target.Scope.Kind("Package")) + "-" + planned.Target.Name
	roles := permissions.Roles(scopes, name, planned.subjects(accounts))
	readers, err := planned.readers(ctx, request)
	if err != nil {
		return cl.Explain("cannot determine the kinds that the manager may read", err)
	}
	roles = append(roles, readers...)

	switch {
	case len(roles) == 0:
		warnings = append(warnings, planned.Target.String()+" has no objects, and needs no rights")
	case accounts[0] == "":
		warnings = append(warnings, "the package has no service account: name one with --account, and with --service-account for the installation")
	}

	for _, warning := range append(planned.warnings, warnings...) {
		fmt.Fprintln(c.Streams.ErrOut, "Warning: "+terminal.Line(warning))
	}

	out := &c.Output
	if !out.Wanted() {
		out = output.YAML()
	}
	return out.Print(c.Streams.Out, output.List{Items: roles})
}

// The manager of config/restricted reads the kinds in its ClusterRole, and in ClusterRoles with
// this label.
const (
	managerRole          = "lockstep-manager"
	aggregateToManager   = "package-operator.run/aggregate-to-manager"
	managerReadsResource = "lockstep-manager-reads-"
)

// readers returns ClusterRoles, one for each resource that the manager may not read. They do not
// depend on the package, because packages can share kinds. If the user may not read the manager's
// role, there are none.
func (p *Planned) readers(ctx context.Context, r permissions.Request) (roles []any, err error) {
	live, manager := &unstructured.Unstructured{}, &rbacv1.ClusterRole{}
	live.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	if err := p.Client.Get(ctx, client.ObjectKey{Name: managerRole}, live); err != nil {
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return nil, nil
		}
		return nil, err
	}

	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, manager); err != nil {
		return nil, err
	}

	for _, resource := range permissions.Unread(r, manager.Rules) {
		role := rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{permissions.Reads(resource)}}
		role.APIVersion, role.Kind = rbacv1.SchemeGroupVersion.String(), "ClusterRole"
		role.Name, role.Labels = managerReadsResource+resource.String(), map[string]string{aggregateToManager: "true"}
		roles = append(roles, role)
	}

	return roles, nil
}

// objects returns the objects of the package.
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

// revisions returns the revisions that might own objects, and the one to return to.
func (c *rbacCommand) revisions(ctx context.Context, cl *cluster.Cluster, p *Planned) ([]corev1alpha1.GenericObjectSet, error) {
	if p.Before == nil {
		if c.from > 0 {
			return nil, fmt.Errorf("%s is not installed, and has no revision %d", p.Target, c.from)
		}
		return nil, nil
	}

	rollout, err := cl.Rollout(ctx, cluster.Name{Scope: p.Target.Scope, Name: p.Target.Name})
	// A package that never had a revision needs only the rights of the new one.
	if err != nil {
		if c.from == 0 && p.Before.PackageStatus().Revision == 0 {
			return nil, nil
		}
		return nil, err
	}

	if c.from > 0 {
		if _, err := rollout.Revision(c.from); err != nil {
			return nil, err
		}
	}

	return slices.DeleteFunc(rollout.Sets, func(set corev1alpha1.GenericObjectSet) bool {
		return set.ObjectSetSpec().LifecycleState == corev1alpha1.ObjectSetLifecycleStateArchived && set.ObjectSetSpec().Revision != c.from
	}), nil
}

// stored returns the objects of a revision.
func (c *rbacCommand) stored(ctx context.Context, cl *cluster.Cluster, set corev1alpha1.GenericObjectSet) ([]*unstructured.Unstructured, error) {
	stored, sealed, err := cl.Objects(ctx, set)
	if err != nil {
		return nil, err
	}
	if sealed {
		fmt.Fprintf(c.Streams.ErrOut, "Warning: revision %d keeps objects with sensitive values in Secrets, which are not read: if an upgrade drops one of these, add the right to delete it\n", set.ObjectSetSpec().Revision)
	}

	var all []*unstructured.Unstructured
	for _, o := range stored {
		all = append(all, &unstructured.Unstructured{Object: o.Value})
	}

	return all, nil
}

// served looks up the kinds of the objects in the cluster. The package creates other kinds, or they
// are created later.
func (p *Planned) served(r *permissions.Request) error {
	r.Kinds = map[schema.GroupKind]permissions.Kind{}
	for _, u := range r.Objects {
		kind := u.GroupVersionKind().GroupKind()
		mapping, err := p.Client.RESTMapper().RESTMapping(kind)
		if err != nil && !meta.IsNoMatchError(err) {
			return err
		}
		if err == nil {
			r.Kinds[kind] = permissions.Kind{Resource: mapping.Resource.Resource, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}
		}
	}
	return nil
}

// subjects returns the accounts that the roles are bound to, without duplicates.
func (p *Planned) subjects(accounts []string) []rbacv1.Subject {
	var subjects []rbacv1.Subject
	for i, name := range accounts {
		if name != "" && !slices.Contains(accounts[:i], name) {
			subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: p.home(), Name: name})
		}
	}
	return subjects
}
