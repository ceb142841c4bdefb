package objecttemplates

import (
	"errors"
	"fmt"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// view is the snapshot of one template in one reconcile: the input of its decisions and its status.
type view struct {
	tmpl corev1alpha1.GenericObjectTemplate
	// forbidden is why the manager does not render the template; empty if it does.
	forbidden string
	// specErr is the fault of the sources of the spec.
	specErr error
	// refs are the references of the sources.
	refs    []sources.Ref
	sources []sourceState
	// waiting means that an input will be known in a moment; inputErr is why one stays unknown for
	// longer.
	waiting     bool
	inputErr    string
	environment manifestsv1alpha1.PackageEnvironment
	outcome
}

// sourceState is a source as the watch shows it.
type sourceState struct {
	*plannedSource
	sources.State
}

// outcome is the result of a reconcile, which the status reports.
type outcome struct {
	// problem is why the object is not written; nil if it is.
	problem *problem
	// desired is the object that is rendered.
	desired *objects.Desired
	// blocking are the objects that a write waits for; unknown means that the state of the object
	// is not known yet.
	blocking []phases.Blocker
	unknown  bool
	// applied means that the live object is as it is rendered, and live is its record.
	applied bool
	live    *objects.Observed
	// leaving are objects that were rendered before and are not on their way out yet.
	leaving []objects.Key
}

// problem is why the object is not written.
type problem struct {
	reason, message string
	// invalid means that the template or one of its inputs is at fault.
	invalid bool
	// passes means that an event ends it; else a user has to change the template.
	passes bool
}

// invalid returns a problem that only a change of the template corrects.
func invalid(reason, message string) *problem {
	return &problem{reason: reason, message: message, invalid: true}
}

// readable decides whether the template can be rendered from its known inputs: ready is false if an
// input is unknown, or if there is a problem.
func readable(v view) (ready bool, p *problem) {
	switch {
	case v.forbidden != "":
		return false, &problem{reason: corev1alpha1.ReasonServiceAccountRequired, message: v.forbidden}
	case v.specErr != nil:
		return false, invalid(corev1alpha1.ReasonSourceError, v.specErr.Error())
	}

	waiting := v.waiting
	var missing, failed []string
	for i := range v.sources {
		switch s := &v.sources[i]; {
		case s.Unserved && s.optional, s.Known && s.Version == "" && s.optional:
		case s.Unserved:
			missing = append(missing, fmt.Sprintf("%s: the API server does not serve %s/%s: install its CustomResourceDefinition", s.field, s.ref.Version, s.ref.GroupKind()))
		case s.Known && s.Version == "":
			missing = append(missing, fmt.Sprintf("%s: %s does not exist", s.field, s.ref))
		case s.Known, errors.Is(s.Err, livestate.ErrNotReady):
			waiting = waiting || !s.Known
		case s.Err != nil:
			failed = append(failed, fmt.Sprintf("%s: %s cannot be watched: %v", s.field, s.ref, s.Err))
		default:
			waiting = true
		}
	}

	switch {
	case waiting:
		return false, nil
	case len(missing) > 0:
		return false, &problem{
			reason: corev1alpha1.ReasonSourceError, invalid: true, passes: true,
			message: strings.Join(missing, "\n") + "\nThe template is rendered when all of its sources exist; mark the ones that are not required as optional.",
		}
	case len(failed) > 0:
		return false, &problem{reason: corev1alpha1.ReasonSourceError, message: strings.Join(failed, "\n"), passes: true}
	case v.inputErr != "":
		return false, &problem{reason: corev1alpha1.ReasonProgressing, message: v.inputErr, passes: true}
	}

	return true, nil
}

const clusterAccountRequired = "This manager writes objects only as ServiceAccounts (--require-service-account=all), and a ClusterObjectTemplate has none: use an ObjectTemplate."

const accountRequired = "This manager writes objects of namespaces only as a ServiceAccount, and has no default for templates: " +
	"start it with --default-service-account, or use a ClusterObjectTemplate."

// refusal is why the manager renders no template in a namespace, or of the cluster; empty if it
// does.
func (o *Options) refusal(namespace string) string {
	switch {
	case namespace == "" && o.AccountRequiredOfAll:
		return clusterAccountRequired
	case namespace != "" && o.AccountRequired && o.Account == "":
		return accountRequired
	}
	return ""
}

// versions identifies the states of all sources.
func versions(all []sourceState) string {
	var b strings.Builder
	for i := range all {
		b.WriteString(all[i].ref.String() + "=" + all[i].Version + "\n")
	}
	return b.String()
}
