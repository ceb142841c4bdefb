package diagnose

import (
	"strings"

	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/internal/phases/refusals"
)

// Reason is the type of a cause.
type Reason = refusals.Reason

// The reasons, from the package down to its pods.
const (
	ReasonNone           Reason = "None"
	ReasonPackage        Reason = "Package"
	ReasonTarget         Reason = "Target"
	ReasonCollision             = refusals.Collision
	ReasonContention            = refusals.Contention
	ReasonWebhook               = refusals.Webhook
	ReasonWebhookFailed         = refusals.WebhookFailed
	ReasonQuota                 = refusals.Quota
	ReasonForbidden             = refusals.Forbidden
	ReasonImmutable             = refusals.Immutable
	ReasonRefused               = refusals.Refused
	ReasonUnserved              = refusals.Unserved
	ReasonNoNamespace           = refusals.NoNamespace
	ReasonAPIService     Reason = "APIService"
	ReasonNotEstablished Reason = "NotEstablished"
	ReasonImagePull      Reason = "ImagePull"
	ReasonCrash          Reason = "Crash"
	ReasonContainer      Reason = "Container"
	ReasonUnschedulable  Reason = "Unschedulable"
	ReasonNode           Reason = "Node"
	ReasonNotReady       Reason = "NotReady"
	ReasonOutdatedPod    Reason = "OutdatedPod"
	ReasonVolume         Reason = "Volume"
	ReasonJob            Reason = "Job"
	ReasonDeleting              = refusals.Deleting
	ReasonCondition      Reason = "Condition"
	ReasonProbe          Reason = "Probe"
	ReasonDependency     Reason = "Dependency"
	ReasonUnanswered            = refusals.Unanswered
)

// Diagnosis explains why a package is not available. Its JSON fields are stable.
type Diagnosis struct {
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name"`
	Summary   summary.Summary `json:"summary"`

	// Phase is the blocked one, and Object has the cause. Both are empty if the package itself has
	// it.
	Phase  string `json:"phase,omitempty"`
	Object string `json:"object,omitempty"`
	Reason Reason `json:"reason"`

	// Cause and Remedy are a sentence each.
	Cause  string `json:"cause"`
	Remedy string `json:"remedy,omitempty"`

	// Chain leads from the package to the cause.
	Chain []Link `json:"chain"`

	// elsewhere means that the cause is in another package, which it names.
	elsewhere bool
}

// Link is one step on the way to a cause.
type Link struct {
	// Depth counts from 0, the package.
	Depth int `json:"depth"`
	// Object, such as "Pod shop/web-1", "phase deploy" or "event Failed".
	Object string `json:"object"`
	// State in a word or two.
	State   string `json:"state,omitempty"`
	Message string `json:"message,omitempty"`
}

// finding is an object or event on the way to a cause, with the findings below it.
type finding struct {
	link  Link
	cause cause
	below []finding
	// dependent means that the object above runs this one.
	dependent bool
}

// cause is a possible cause. A cause of a higher weight explains more.
type cause struct {
	weight       int
	reason       Reason
	object       string
	text, remedy string
}

// The weights of causes, from the least to the most conclusive. A certain cause is the API server's
// own statement.
const (
	weightProbe = iota + 1
	weightCondition
	weightEvent
	weightPod
	weightCertain
)

// best returns the cause of the highest weight. Among equal ones the deeper cause wins. Dependents
// precede conditions and events of the object that runs them, because that object copies their
// failures, and later.
func (f *finding) best() cause {
	var found cause
	for _, dependent := range []bool{true, false} {
		for i := range f.below {
			if f.below[i].dependent != dependent {
				continue
			}
			if c := f.below[i].best(); c.weight > found.weight {
				found = c
			}
		}
	}

	if f.cause.weight > found.weight {
		return f.cause
	}
	return found
}

// flatten appends the finding and everything below it to the chain, depth first.
func (f *finding) flatten(depth int, into []Link) []Link {
	link := f.link
	link.Depth = depth
	into = append(into, link)
	for i := range f.below {
		into = f.below[i].flatten(depth+1, into)
	}
	return into
}

// Text prints the diagnosis of a package for people.
func (d *Diagnosis) Text(name string, styles terminal.Styles) string {
	t := terminal.Writer{Styles: styles}
	if d.Reason == ReasonNone {
		t.Line(styles.Strong(terminal.Line(name)) + ": " + styles.Good(d.Summary.Words()) + ", " + terminal.Line(d.Cause))
		return t.String()
	}

	head := styles.Strong(terminal.Line(name)) + ": " + styles.Bad(d.Summary.Words())
	if d.Phase != "" {
		head += ", phase " + terminal.Line(d.Phase) + " waits"
	}
	t.Line(head)
	t.Line("Cause  " + terminal.Line(d.Cause))
	if d.Remedy != "" {
		t.Line("Do     " + terminal.Line(d.Remedy))
	}
	t.Line("")

	for _, link := range d.Chain {
		text := strings.Repeat("  ", link.Depth) + terminal.Line(link.Object)
		if link.State != "" {
			text += "  " + styles.Busy(terminal.Line(link.State))
		}
		if link.Message != "" {
			text += "  " + terminal.Line(link.Message)
		}
		t.Line(text)
	}

	return t.String()
}
