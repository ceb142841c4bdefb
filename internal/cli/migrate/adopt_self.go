package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/planning"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

// ownTarget is the engine's own package.
var ownTarget = progress.Target{Scope: corev1alpha1.ScopeCluster, Name: corev1alpha1.EnginePackage}

// ownName is how commands name it.
var ownName = cluster.Name{Scope: corev1alpha1.ScopeCluster, Name: corev1alpha1.EnginePackage}

// runSelf makes the engine's own package adopt the engine, whatever installed it.
func (c *adoptEngineCommand) runSelf(ctx context.Context) error {
	if c.image == "" {
		return errors.New("--image is missing: name the image of the engine's own package")
	}
	if err := c.open(); err != nil {
		return err
	}
	c.cluster.Namespace, c.Wait = corev1alpha1.DefaultNamespace, true
	found, err := c.find(ctx)
	if err != nil {
		return err
	}
	if err := cmp.Or(found.adoptable(), c.others(ctx)); err != nil {
		return err
	}
	records, err := c.helmRecords(ctx)
	if err != nil {
		return err
	}
	steps := []engineStep{c.ownStep(found, records)}
	findings := found.selfFindings()
	for _, in := range records {
		findings = append(findings, engineFinding{"Helm", "release " + in.release})
		steps = append(steps, c.recordStep(in))
	}
	if err := c.show("The engine as a package", findings, steps); err != nil {
		return err
	}
	if !steps[0].done {
		if err := c.planOwn(ctx, records); err != nil {
			return err
		}
	}
	_, err = c.perform(ctx, "Have "+ownTarget.String()+" adopt the engine?", steps)
	return err
}

// selfFindings are those about this engine.
func (f *former) selfFindings() []engineFinding {
	lease, about, pkg := "held by nobody", "not found", "not found"
	if f.holder != "" {
		lease = "held by " + f.holder
	}
	if f.ours != nil {
		about = terminal.Count(int(ptr.Deref(f.ours.Spec.Replicas, 1)), "replica") + " of " + f.ours.Spec.Template.Spec.Containers[0].Image
	}
	if f.own.pkg != nil {
		pkg = f.own.pkg.Spec.Image
	}
	return []engineFinding{{"Lease", lease}, {"Deployment " + engineDeployment, about}, {"ClusterPackage " + corev1alpha1.EnginePackage, pkg}}
}

// ofFormer reports whether Package Operator runs, or the ClusterPackage is its own.
func (f *former) ofFormer() bool {
	return f.manager != nil && ptr.Deref(f.manager.Spec.Replicas, 1) > 0 || strings.HasPrefix(f.holder, formerDeployment) ||
		slices.ContainsFunc(f.own.owned, func(o client.Object) bool { return o.GetName() == formerDeployment })
}

// adoptable returns an error where no manager of this engine can adopt the installation.
func (f *former) adoptable() error {
	switch {
	case f.ofFormer():
		return errors.New("nothing was changed: take the cluster over from Package Operator first: kubectl package adopt-engine")
	case f.ours == nil:
		return errors.New("nothing was changed: this engine is not installed, which adopts what it is made of: install it by YAML or Helm")
	case f.holder == "":
		return errors.New("nothing was changed: nobody holds the Lease, and a manager has to adopt what it is made of: see kubectl -n " +
			f.ours.Namespace + " get pods")
	case f.own.pkg != nil && f.own.pkg.DeletionTimestamp != nil:
		return fmt.Errorf("nothing was changed: %s is being deleted: wait until it is gone", ownTarget)
	case requiresAccounts(f.ours) && (f.own.pkg == nil || f.own.pkg.Spec.ServiceAccountName == ""):
		return fmt.Errorf("nothing was changed: with --require-service-account=all the manager installs no ClusterPackage without a ServiceAccount: "+
			"take the value all off, or create %s before, with paused: true and, in spec.serviceAccountName, an account of %s other than %s, with the rights of it",
			ownTarget, f.ours.Namespace, engineDeployment)
	}
	return nil
}

// requiresAccounts reports whether a manager installs ClusterPackages only as ServiceAccounts.
func requiresAccounts(manager *appsv1.Deployment) bool {
	return slices.ContainsFunc(manager.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return slices.Contains(c.Args, "--require-service-account=all") ||
			slices.Contains(c.Env, corev1.EnvVar{Name: "LOCKSTEP_REQUIRE_SERVICE_ACCOUNT", Value: "all"})
	})
}

// ofOwnPackage reports whether the manager's Deployment belongs to the engine's own package.
func ofOwnPackage(manager *appsv1.Deployment) bool {
	if manager == nil {
		return false
	}
	ref := metav1.GetControllerOf(manager)
	return ref != nil && ref.Kind == corev1alpha1.ScopeCluster.Kind("ObjectDeployment") && ref.Name == corev1alpha1.EnginePackage
}

// ownStep installs the package, which adopts what nothing controls, and waits until it is available. The Deployment is in its last phase.
func (c *adoptEngineCommand) ownStep(f former, records []*installation) engineStep {
	pkg, what := f.own.pkg, "install "
	paused := pkg != nil && pkg.Spec.Paused
	if paused {
		what = "unpause "
	}
	return engineStep{
		what: what + ownTarget.String() + " of " + c.image + ", which adopts the engine",
		done: pkg != nil && !paused && pkg.Spec.Image == c.image && ofOwnPackage(f.ours) && meta.IsStatusConditionTrue(pkg.Status.Conditions, corev1alpha1.ConditionAvailable),
		do: func(ctx context.Context) (err error) {
			if paused { // by one write: another image is not to be adopted before
				patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"image":%q,"paused":false}}`, pkg.UID, c.image)
				err = c.cluster.Explain("cannot change "+ownTarget.String(),
					c.client.Patch(ctx, pkg.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(command.FieldManager)))
			}
			if err == nil {
				err = desired.Package{Name: ownName, Image: c.image}.Install(ctx, &c.Command, c.cluster, ownTarget, nil)
			}
			return remain(err, records)
		},
	}
}

// remain adds to an error that the records are still there.
func remain(err error, records []*installation) error {
	for _, in := range records {
		if err != nil {
			err = in.remains(err)
		}
	}
	return err
}

// planOwn shows what the package changes, and refuses another package, and to lose what flags and values of the install say.
func (c *adoptEngineCommand) planOwn(ctx context.Context, records []*installation) error {
	planned, plan, err := planning.OfImage(ctx, c.Command, c.registry, c.cluster, ownName, c.image)
	if err != nil {
		return c.cluster.Explain("cannot plan "+ownTarget.String(), err)
	}
	brought, err := (&handoverPlan{cluster: c.cluster, Planned: planned}).phases()
	if err != nil {
		return err
	}
	if err := isOwn(planned.Loaded.CatalogName, brought); err != nil {
		return fmt.Errorf("nothing was changed: %s %w", c.image, err)
	}
	out := c.Streams.ErrOut
	if c.dryRun {
		out = c.Streams.Out
	}
	fmt.Fprint(out, planning.Text(plan, terminal.StylesFor(out)))
	for _, line := range leftBehind(records, brought) {
		fmt.Fprintln(out, terminal.Line(line))
	}
	if n := len(plan.Refusals); n > 0 {
		return fmt.Errorf("nothing was changed: %s would not be rolled out: %s", ownTarget, terminal.Count(n, "refusal"))
	}
	if lost := losses(plan); len(lost) > 0 && !c.acceptLosses && !c.dryRun {
		return fmt.Errorf("nothing was changed: the package has other values than what is installed: %s. Adopt it in the version that runs, with flags and values "+
			"as spec.patches of %s, created before with paused: true; --accept-losses goes on all the same", strings.Join(lost[:min(len(lost), command.MostNamed)], ", "), ownTarget)
	}
	return nil
}

// isOwn returns an error unless a package is the engine's own one: by its name in catalogs, and what it brings.
func isOwn(name string, brought map[objects.Key]string) error {
	manager := objects.Key{Group: "apps", Kind: "Deployment", Namespace: corev1alpha1.DefaultNamespace, Name: engineDeployment}
	if name != ownCatalogName || brought[manager] == "" {
		return fmt.Errorf("is the package %s, and not the engine's own one, which is %s and brings %s", terminal.Line(name), ownCatalogName, manager)
	}
	return nil
}

// ownCatalogName is the packageName of the engine's own package.
const ownCatalogName = "engine.lockstep.run"

// leftBehind are lines on the objects of Helm that the package does not bring, and that nothing manages afterwards.
func leftBehind(records []*installation, brought map[objects.Key]string) (lines []string) {
	for _, in := range records {
		for _, key := range in.recorded {
			ofCluster := key
			ofCluster.Namespace = ""
			if brought[key] == "" && brought[ofCluster] == "" {
				lines = append(lines, key.String()+" stays as it is: the package does not bring it")
			}
		}
	}
	return lines
}

// losses are the fields of installed objects that change, but for metadata of tools and the text by which the image is named.
func losses(plan *dryrun.Plan) (lost []string) {
	for i := range plan.Phases {
		for j := range plan.Phases[i].Changes {
			change := &plan.Phases[i].Changes[j]
			if change.Action == dryrun.ActionCreate {
				continue
			}
			for k := range change.Fields {
				if field := &change.Fields[k]; losing(field) {
					lost = append(lost, change.Object()+" "+field.Path)
				}
			}
		}
	}
	return lost
}

// losing reports whether a change of a field loses what the install says. Labels and annotations that are only added lose nothing.
func losing(field *dryrun.Field) bool {
	if !strings.HasPrefix(field.Path, "metadata.") {
		return !strings.HasSuffix(field.Path, ".image")
	}
	if field.Before == nil {
		return false
	}
	for _, at := range []string{"metadata.labels", "metadata.annotations"} {
		rest, is := strings.CutPrefix(field.Path, at)
		if !is {
			continue
		}
		keys := []string{strings.Trim(rest, `.[]"`)}
		if all, whole := field.Before.(map[string]any); whole {
			keys = slices.Collect(maps.Keys(all))
		}
		return slices.ContainsFunc(keys, func(key string) bool { return !ofTools(key) })
	}
	return true
}

// ofTools reports whether a label or annotation is what the tools that install write for themselves.
func ofTools(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return slices.Contains([]string{"app.kubernetes.io", "helm.sh", "meta.helm.sh", "kubectl.kubernetes.io", corev1alpha1.GroupName}, domain)
}

// helmRecords are the records of Helm of releases with the manager's Deployment.
func (c *adoptEngineCommand) helmRecords(ctx context.Context) ([]*installation, error) {
	h := &handoverPlan{cluster: c.cluster, Planned: &planning.Planned{Client: c.client}}
	names := map[string]bool{}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := c.client.List(ctx, list, client.InNamespace(c.cluster.Namespace), client.MatchingLabels{"owner": "helm"}); err != nil {
		return nil, c.cluster.Explain("cannot list Secrets", err)
	}
	for i := range list.Items {
		if name := list.Items[i].Labels["name"]; name != "" {
			names[name] = true
		}
	}
	var records []*installation
	for name := range names {
		in, err := readRelease(ctx, h, name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(in.recorded, func(o objects.Key) bool { return o.Kind == "Deployment" && o.Name == engineDeployment }) {
			records = append(records, in)
		}
	}
	slices.SortFunc(records, func(a, b *installation) int { return strings.Compare(a.release, b.release) })
	return records, nil
}

// recordStep deletes the record of a release, whose objects the package has by then.
func (c *adoptEngineCommand) recordStep(in *installation) engineStep {
	return engineStep{
		what: "delete Helm's record of the release " + in.release + ", so that helm uninstall deletes nothing",
		do: func(ctx context.Context) error {
			manager, err := c.manager(ctx, engineDeployment)
			if err == nil && !ofOwnPackage(manager) {
				err = fmt.Errorf("Deployment %s does not belong to %s", engineDeployment, ownTarget) //nolint:staticcheck // it is a kind
			}
			if err != nil {
				return in.remains(err)
			}
			h := &handoverPlan{cluster: c.cluster, Planned: &planning.Planned{Client: c.client}}
			return in.forget(ctx, &adoptCommand{handoverCommand: handoverCommand{Command: c.Command}}, h)
		},
	}
}
