package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/refusals"
)

// Explain follows a package to the cause that it waits for. The client reads any kind. read reads
// the packages that it depends on. connect connects to the cluster that holds the objects of a
// package with a targetRef.
func Explain(
	ctx context.Context, c client.Client, snap progress.Snapshot, deployment corev1alpha1.GenericObjectDeployment, read Reader,
	connect func(corev1alpha1.GenericPackage) (client.Client, error),
) (*Diagnosis, error) {
	return (&dependencies{client: c, read: read, connect: connect, seen: map[progress.Target]bool{}}).explain(ctx, snap, deployment)
}

// explain explains one package.
func (f *dependencies) explain(ctx context.Context, snap progress.Snapshot, deployment corev1alpha1.GenericObjectDeployment) (*Diagnosis, error) {
	state := progress.Of(snap)
	report := progress.ReportOf(snap)
	d := &Diagnosis{Kind: report.Kind, Namespace: report.Namespace, Name: report.Name, Summary: report.Summary}
	top := finding{link: Link{Object: name(report.Kind, report.Namespace, report.Name), State: string(report.Summary)}}
	if report.Summary == summary.Waiting || report.Summary == summary.Unsatisfied {
		return d, f.follow(ctx, snap, state, d)
	}

	if report.Summary == summary.Available {
		d.Reason, d.Cause = ReasonNone, "its status reports no problem"
		if deployment != nil {
			top.link.Message = ranBefore(deployment)
		}
		d.Chain = top.flatten(0, nil)

		return d, nil
	}

	own := progress.CauseOf(state)
	if !own.Blocked {
		d.Reason = ReasonPackage
		if state.Away != "" && state.Paused == "" {
			d.Reason = ReasonTarget
		}
		top.link.Message, d.Cause, d.Remedy = own.Text, own.Text, own.Remedy

		for i, detail := range own.Details {
			if i == 0 {
				d.Cause += ": " + detail
				continue
			}
			top.below = append(top.below, finding{link: Link{Object: "also", Message: detail}})
		}

		d.Chain = top.flatten(0, nil)
		return d, nil
	}

	e := explainer{client: f.client}
	remote := snap.Package != nil && snap.Package.PackageSpec().TargetRef != nil
	var err error
	if remote {
		e.client, err = f.connect(snap.Package)
	}
	var phase finding
	if err == nil {
		phase, err = e.phase(ctx, report, own.Phase)
	}

	if err != nil && remote { // the status alone explains it
		top.below = append(top.below, finding{link: Link{Object: "the cluster of its targetRef", State: "not read", Message: err.Error()}})
		e.client = nil
		phase, err = e.phase(ctx, report, own.Phase)
	}

	if err != nil {
		return nil, err
	}
	top.below = append(top.below, chain(snap, deployment, phase))
	found := top.best()
	d.Phase, d.Object, d.Reason, d.Cause, d.Remedy = own.Phase, found.object, found.reason, found.text, found.remedy
	d.Chain = top.flatten(0, nil)

	return d, nil
}

// name returns the name of an object in the chain.
func name(kind, namespace, name string) string {
	return objects.Key{Kind: kind, Namespace: namespace, Name: name}.String()
}

// chain puts the revision and the deployment, as far as they are known, above a phase.
func chain(snap progress.Snapshot, deployment corev1alpha1.GenericObjectDeployment, phase finding) finding {
	if set := snap.Set; set != nil {
		phase = finding{
			link: Link{
				Object: name(snap.Target.Scope.Kind("ObjectSet"), set.GetNamespace(), set.GetName()),
				State:  fmt.Sprintf("revision %d", set.ObjectSetSpec().Revision), Message: failing(set, corev1alpha1.ConditionAvailable),
			},
			below: []finding{phase},
		}
	}

	if deployment != nil {
		link := Link{Object: name(snap.Target.Scope.Kind("ObjectDeployment"), deployment.GetNamespace(), deployment.GetName()), Message: ranBefore(deployment)}
		if c := meta.FindStatusCondition(*deployment.StatusConditions(), corev1alpha1.ConditionAvailable); c != nil {
			link.State = c.Type + "=" + string(c.Status) + " " + c.Reason
		}
		phase = finding{link: link, below: []finding{phase}}
	}

	return phase
}

// ranBefore names the Jobs that succeeded earlier. No rollout waits for them.
func ranBefore(deployment corev1alpha1.GenericObjectDeployment) string {
	var keys []objects.Key
	for _, j := range deployment.ObjectDeploymentStatus().Jobs {
		if j.Result == corev1alpha1.JobSucceeded {
			keys = append(keys, objects.Key{Kind: j.Kind, Namespace: j.Namespace, Name: j.Name})
		}
	}
	return strings.TrimSuffix(phases.DescribeCompleted(keys), ".")
}

// failing returns the reason of a condition that is not True; empty otherwise.
func failing(obj corev1alpha1.Conditioned, typ string) string {
	if c := meta.FindStatusCondition(*obj.StatusConditions(), typ); c != nil && c.Status != "True" {
		return c.Reason
	}
	return ""
}

// explainer examines the objects that block a phase.
type explainer struct {
	// client reads the cluster that holds the objects; nil if that cluster cannot be read.
	client client.Client
}

// objectsExamined is the maximum number of blocking objects that are examined. Others are only
// named.
const objectsExamined = 5

// phase examines the blocking objects of a phase. Several objects with the same refusal are
// examined as one.
func (e *explainer) phase(ctx context.Context, report progress.Report, first string) (finding, error) {
	f := finding{link: Link{Object: "phase " + first}}
	for _, ph := range report.Phases {
		if ph.Name == first {
			f.link.State = fmt.Sprintf("%s, %d of %d ready", ph.State, ph.Ready, ph.Total)
		}
	}

	keys, notes := map[string]objects.Key{}, []objects.Message{}
	for _, b := range report.Blocking {
		if b.Phase == first {
			key := objects.Key{Group: b.Group, Kind: b.Kind, Namespace: b.Namespace, Name: b.Name}
			keys[key.String()] = key
			notes = append(notes, objects.Message{Object: key.String(), Text: b.Message, More: int(b.More)})
		}
	}

	n := 0
	for _, remark := range splitUnlessRefused(keys, objects.GroupMessages(notes)) {
		key := keys[remark.Objects[0]]
		if n++; n > objectsExamined {
			f.below = append(f.below, finding{link: Link{Object: names(keys, remark), Message: remark.Text}})
			continue
		}
		one, err := e.object(ctx, key, names(keys, remark), remark.Text)
		if err != nil {
			return f, err
		}
		f.below = append(f.below, one)
	}

	return f, nil
}

// splitUnlessRefused groups refused objects. Others are split, because they have their own pods and
// events.
func splitUnlessRefused(keys map[string]objects.Key, remarks []objects.GroupedMessage) []objects.GroupedMessage {
	var out []objects.GroupedMessage
	for _, remark := range remarks {
		if _, is := refused(keys[remark.Objects[0]], "", remark.Text); is {
			out = append(out, remark)
			continue
		}
		for _, object := range remark.Objects {
			out = append(out, objects.GroupedMessage{Objects: []string{object}, Text: remark.Text})
		}
		out[len(out)-1].More = remark.More
	}
	return out
}

// names omits groups.
func names(keys map[string]objects.Key, remark objects.GroupedMessage) string {
	shorter := objects.GroupedMessage{Objects: make([]string, len(remark.Objects)), More: remark.More}
	for i, object := range remark.Objects {
		shorter.Objects[i] = objectdiff.Short(keys[object])
	}
	return shorter.Names()
}

// object examines one of the objects with a message.
func (e *explainer) object(ctx context.Context, key objects.Key, names, message string) (finding, error) {
	f := finding{link: Link{Object: names, Message: message}}
	if c, is := refused(key, names, message); is {
		// The API server only reports an unknown kind. An APIService that does not answer explains
		// more.
		if c.reason == ReasonUnserved && e.client != nil {
			if err := e.served(ctx, key, &c); err != nil {
				return f, err
			}
		}
		f.link.State = string(c.reason)
		f.cause = c
		if c.reason != ReasonDeleting {
			return f, nil
		}

		live, err := e.read(ctx, key)
		if err != nil || live == nil {
			return f, err
		}
		f.below, err = e.remains(ctx, key, live)

		return f, err
	}

	f.cause = cause{
		weight: weightProbe, reason: ReasonProbe, object: objectdiff.Short(key), text: objectdiff.Short(key) + " is not ready: " + message,
		remedy: "The messages of its availability probes name the missing condition.",
	}

	if strings.HasPrefix(message, refusals.RuleFailed) {
		f.cause.remedy = "Correct the rule of its availability probe in the manifest; guard a field that can be absent with has()."
	}
	live, err := e.read(ctx, key)
	if err != nil || live == nil {
		return f, err
	}

	f.below, err = e.below(ctx, key, live)
	return f, err
}

// below returns the findings about a live object: its conditions, the objects that it runs, and its
// events.
func (e *explainer) below(ctx context.Context, key objects.Key, live *unstructured.Unstructured) ([]finding, error) {
	dependents, err := e.dependents(ctx, key, live)
	if err != nil {
		return nil, err
	}
	for i := range dependents {
		dependents[i].dependent = true
	}
	events, err := e.eventsOf(ctx, live.GetNamespace(), live.GetUID())
	return slices.Concat(conditionFindings(key, live), dependents, eventFindings(objectdiff.Short(key), events)), err
}

// served finds an unavailable APIService.
func (e *explainer) served(ctx context.Context, key objects.Key, c *cause) error {
	services, err := e.apiServices(ctx)
	if err != nil {
		return err
	}

	for i := range services {
		item := &services[i]
		group, _, _ := unstructured.NestedString(item.Object, "spec", "group")
		of := objects.Key{Group: apiService.Group, Kind: apiService.Kind, Name: item.GetName()}
		for _, found := range conditionFindings(of, item) {
			if group == key.Group && found.cause.reason == ReasonAPIService {
				c.reason, c.remedy = ReasonAPIService, found.cause.remedy
				c.text = objectdiff.Short(key) + " is of a kind whose API does not answer: " + found.cause.text
			}
		}
	}

	return nil
}

// read reads a live object; nil if it is absent or the user may not read it.
func (e *explainer) read(ctx context.Context, key objects.Key) (*unstructured.Unstructured, error) {
	if e.client == nil {
		return nil, nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: key.Group, Version: e.version(key), Kind: key.Kind})
	err := e.client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, u)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("read %s: %w", objectdiff.Short(key), err)
	}
	return u, nil
}

// version returns a served version of a kind. If discovery fails, the request with v1 returns the
// error.
func (e *explainer) version(key objects.Key) string {
	if m, err := e.client.RESTMapper().RESTMapping(key.GroupKind()); err == nil {
		return m.GroupVersionKind.Version
	}
	return "v1"
}

// Package finds out why a package in a cluster is not available.
func Package(ctx context.Context, cl *cluster.Cluster, target progress.Target, pkg corev1alpha1.GenericPackage) (*Diagnosis, error) {
	all, err := cl.AnyKind()
	if err != nil {
		return nil, err
	}
	return PackageBy(ctx, cl, all, target, pkg)
}

// PackageBy is Package with a given client for all kinds, so that several searches share its
// discovery.
func PackageBy(
	ctx context.Context, cl *cluster.Cluster, all client.Client, target progress.Target, pkg corev1alpha1.GenericPackage,
) (*Diagnosis, error) {
	snap, deployment, err := cl.Snapshot(ctx, target, pkg)
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context, t progress.Target) (progress.Snapshot, corev1alpha1.GenericObjectDeployment, error) {
		pkg, err := cl.Read(ctx, t)
		// The user may not read each package.
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return progress.Snapshot{Target: t}, nil, nil
		}
		if err != nil {
			return progress.Snapshot{}, nil, cl.Explain("cannot read "+t.String(), err)
		}
		return cl.Snapshot(ctx, t, pkg)
	}
	d, err := Explain(ctx, all, snap, deployment, read, func(pkg corev1alpha1.GenericPackage) (client.Client, error) {
		return cl.AnyKindAt(ctx, pkg.GetNamespace(), pkg.PackageSpec().TargetRef)
	})
	if err != nil {
		return nil, cl.Explain("cannot explain "+target.String(), err)
	}

	// Only an unknown cause is worth the request for the Lease.
	if d.Reason == ReasonPackage && progress.Unreported(progress.Of(snap)) {
		if delay := cl.Delay(ctx); delay != "" {
			d.Cause += "; " + delay
		}
	}

	return d, nil
}
