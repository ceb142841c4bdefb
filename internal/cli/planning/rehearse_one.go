package planning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/progress"
)

// one rehearses a package, and reports whether it was at rest.
func (c *rehearseCommand) one(ctx context.Context, cl *cluster.Cluster, pkg corev1alpha1.GenericPackage) (found []finding, rested bool) {
	r := &rehearsed{Target: progress.TargetOf(pkg), pkg: pkg}
	r.before = progress.ReportOf(progress.Snapshot{Target: r.Target, Package: pkg}).Summary
	if !r.loaded() {
		return nil, false
	}
	at := *cl
	at.Namespace = cmp.Or(r.Namespace, cl.Namespace)
	var planned *Planned
	if c.loads {
		planned = c.loadInstalled(ctx, &at, r)
	}
	if !r.atRest() {
		return r.found, false
	}
	if err := c.reconcile(ctx, &at, planned, r); err != nil {
		r.add(notRehearsed, "", "", err.Error())
	}
	return r.found, true
}

// loadInstalled loads the installed image, wherever its tag or its repository leads now; nil where that fails.
func (c *rehearseCommand) loadInstalled(ctx context.Context, cl *cluster.Cluster, r *rehearsed) *Planned {
	pinned := func(_ progress.Target, spec *corev1alpha1.PackageSpec) error {
		spec.ImagePullPolicy = corev1alpha1.ImagePullPolicyIfNotPresent
		if resolved := r.pkg.PackageStatus().Resolved; spec.PackageRef != nil && resolved != nil {
			spec.PackageRef.Version = resolved.Version
		}
		return nil
	}
	planned, err := c.Load(ctx, cl, Wanted{Name: cluster.Name{Scope: r.Scope, Name: r.Name}, Edit: pinned})
	switch {
	case err == nil:
		return planned
	case errors.As(err, new(cluster.NotFoundError)): // it was deleted meanwhile
	case planned.rendering:
		r.add(loadFails, "", "", err.Error())
	default:
		r.add(notRehearsed, "", "", "it cannot be loaded: "+err.Error())
	}
	return nil
}

// reconcile runs the engine on the installed objects. planned is nil where the package was not loaded.
func (c *rehearseCommand) reconcile(ctx context.Context, cl *cluster.Cluster, planned *Planned, r *rehearsed) error {
	request := dryrun.Request{Scope: r.Scope, Namespace: r.Namespace, Name: r.Name, ManagerNamespace: corev1alpha1.DefaultNamespace}
	if planned == nil {
		planned = &Planned{Target: r.Target, shared: c.shared}
		if err := planned.connect(ctx, cl, r.Namespace, r.pkg.PackageSpec().TargetRef); err != nil {
			return err
		}
	} else {
		request = planned.Request()
	}
	request.Many = true
	at, err := planned.Preview(ctx, cl)
	if err != nil {
		return err
	}
	result, err := dryrun.Rehearse(ctx, at, request)
	if err != nil {
		return err
	}
	r.compare(result)
	if !result.Differs {
		return nil
	}
	plan, err := dryrun.Make(ctx, at, request)
	if err != nil {
		return err
	}
	r.add(rendered, "", "", fmt.Sprintf("its next load makes revision %d: %s", plan.Revision, plan.Summary))
	r.refuse(plan.Refusals, "its next load would stop: ")
	return nil
}

// rehearsed is the result of a package.
type rehearsed struct {
	progress.Target
	pkg    corev1alpha1.GenericPackage
	before progress.Summary
	found  []finding
}

// loaded reports whether the former manager has loaded the package, so that a failure to load it is news.
func (r *rehearsed) loaded() bool {
	return r.atRest() || r.before == progress.SummaryStalled || r.before == progress.SummaryProgressing
}

// atRest reports whether the former manager has nothing to write of the package.
func (r *rehearsed) atRest() bool {
	return slices.Contains([]progress.Summary{progress.SummaryAvailable, progress.SummaryPaused, progress.SummaryUnavailable}, r.before)
}

func (r *rehearsed) add(what findingType, phase, object, message string) {
	r.found = append(r.found, finding{
		Kind: r.Kind(), Namespace: r.Namespace, Name: r.Name, Finding: what, Phase: phase, Object: object, Message: message,
	})
}

func (r *rehearsed) refuse(refusals []dryrun.Refusal, prefix string) {
	for i := range refusals {
		object := ""
		if refusals[i].Kind != "" {
			object = refusals[i].Object()
		}
		r.add(refused, refusals[i].Phase, object, prefix+refusals[i].Message)
	}
}

// compare adds what the engine of this version would do otherwise than the former one.
func (r *rehearsed) compare(result *dryrun.Rehearsal) {
	r.refuse(result.Refusals, "")
	if meta.IsStatusConditionTrue(result.Was, corev1alpha1.ConditionAvailable) {
		for i := range result.NotReady {
			r.add(notReady, result.NotReady[i].Phase, result.NotReady[i].Object(), result.NotReady[i].Message)
		}
		if is := meta.FindStatusCondition(result.Is, corev1alpha1.ConditionAvailable); len(r.found) == 0 && (is == nil || is.Status != "True") {
			message := "the deployment would not be available any more"
			if is != nil {
				message = cmp.Or(is.Message, is.Reason)
			}
			r.add(notReady, "", "", message)
		}
	}
	for i := range result.Changes {
		r.add(written, "", result.Changes[i].Object(), changeText(&result.Changes[i]))
	}
	for _, write := range result.Ours {
		verb, object, _ := strings.Cut(write, " ")
		r.add(written, "", object, verb)
	}
	for _, warning := range result.Warnings {
		r.add(notRehearsed, "", "", warning)
	}
}

// fieldsShown is how many fields of an object a line names.
const fieldsShown = 5

// changeText is what happens to an object, with the fields that change, without their values.
func changeText(c *dryrun.Change) string {
	text := strings.ToLower(string(c.Action))
	var paths []string
	for _, f := range c.Fields[:min(len(c.Fields), fieldsShown)] {
		paths = append(paths, f.Path)
	}
	if more := len(c.Fields) - len(paths); more > 0 {
		paths = append(paths, fmt.Sprintf("%d more", more))
	}
	if len(paths) > 0 {
		text += ": " + strings.Join(paths, ", ")
	}
	return text
}
