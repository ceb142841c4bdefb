// Package refusals parses messages of the engine and of API servers about refused writes into
// reasons and remedies. Conditions, status, plan and explain share the remedies.
package refusals

import (
	"cmp"
	"regexp"
	"strings"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// Reason is the category of a refusal.
type Reason string

// The reasons.
const (
	Collision     Reason = "Collision"
	Contention    Reason = "Contention"
	Webhook       Reason = "Webhook"
	WebhookFailed Reason = "WebhookFailed"
	Quota         Reason = "Quota"
	Forbidden     Reason = "Forbidden"
	Immutable     Reason = "Immutable"
	Refused       Reason = "Refused"
	Unserved      Reason = "Unserved"
	NoNamespace   Reason = "NoNamespace"
	Deleting      Reason = "Deleting"
	Unanswered    Reason = "Unanswered"
)

// Refusal explains in a sentence why an object is not written, with a remedy.
type Refusal struct {
	Reason       Reason
	Text, Remedy string
}

// Remedy returns the remedy for a refused object. It is empty if the message contains one itself,
// or is not about a refusal.
func Remedy(key objects.Key, message string) string {
	r, is := Of(key, "", message)
	if told := strings.TrimSuffix(r.Remedy, "."); !is || told == "" || strings.Contains(message, told[1:]) {
		return ""
	}
	return r.Remedy
}

// RuleFailed is the prefix of messages about rules that cannot be evaluated.
const RuleFailed = "CEL program failed: "

// Of reports whether the message of a blocking object is about a refused write. The
// refusal calls the object, or several with the same message, object.
func Of(key objects.Key, object, message string) (Refusal, bool) {
	r, is := of(key, object, message)
	r.Remedy = strings.ReplaceAll(r.Remedy, "NAMESPACE", cmp.Or(key.Namespace, "NAMESPACE"))
	return r, is
}

func of(key objects.Key, object, message string) (Refusal, bool) {
	of := func(reason Reason, text, remedy string) (Refusal, bool) { return Refusal{reason, text, remedy}, true }
	reason := trimRequest(message)
	says := func(text string) bool { return strings.Contains(message, text) }
	switch {
	case strings.HasPrefix(message, RuleFailed): // the text of a rule is arbitrary
		return Refusal{}, false
	case says("is controlled by "), says("exists already and nothing controls it"), says("belongs to ") && says("leave it out here"):
		what, remedy, _ := strings.Cut(message, ": ")
		return of(Collision, object+" "+what, upper(remedy))
	case says(" again and again"):
		what, remedy, _ := strings.Cut(message, ": ")
		return of(Contention, object+": "+what, upper(remedy))
	case says("failed calling webhook"):
		return webhookFailed(object, message), true
	case says("admission webhook ") && says("denied the request"):
		name := Quoted(message)
		return of(Webhook, "the webhook "+name+" refuses "+object+": "+WebhookReason(reason),
			"Change the object as the webhook requires, or the webhook's configuration: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations. The engine retries automatically.")
	case says("ValidatingAdmissionPolicy ") && says("denied request"):
		return of(Webhook, "an admission policy refuses "+object+": "+reason, "Change the object as the policy requires, or change the policy. The engine retries automatically.")
	case says("because it is being terminated"):
		return of(Deleting, "the namespace of "+object+" is being deleted: "+reason,
			"Wait until it no longer exists. If the package brings it, it is recreated; otherwise create it again. To see why it stays: kubectl get namespace NAMESPACE -o yaml")
	case missingNamespace.MatchString(reason):
		return of(NoNamespace, "the namespace of "+object+" does not exist",
			"Create it: kubectl create namespace NAMESPACE, or bring it in an earlier phase of the package. It is retried automatically.")
	case says("exceeded quota"):
		return OfQuota(object, reason), true
	case strings.HasPrefix(message, "ServiceAccount ") && (says(" may not ") || says(" does not exist: ")):
		what, remedy, _ := strings.Cut(message, ": ")
		return of(Forbidden, object+" cannot be written: "+what, upper(remedy))
	case says("is forbidden") && (says("cannot ") || says("attempting to grant")):
		return of(Forbidden, "the engine is not allowed to write "+object+": "+reason,
			"Grant the missing rights in the cluster of the object to the user of the request: the manager's service account, or with a targetRef the user of the kubeconfig. The engine cannot grant rights that it does not have.")
	}

	if c, is := byCluster(key, object, message); is {
		return c, true
	}

	return unfit(key, object, message)
}

// byCluster is the part of Of for refusals and timeouts of the cluster, regardless of the object.
func byCluster(key objects.Key, object, message string) (Refusal, bool) {
	of := func(reason Reason, text, remedy string) (Refusal, bool) { return Refusal{reason, text, remedy}, true }
	reason := trimRequest(message)
	says := func(text string) bool { return strings.Contains(message, text) }
	switch {
	case says("disallowed by cluster policy"):
		return of(Forbidden, "the cluster forbids "+object+": "+reason,
			"The object may be right: have the cluster allow it (privileged containers: kube-apiserver --allow-privileged), or leave it out of the package. The engine retries automatically.")
	case says("violates PodSecurity "):
		return of(Forbidden, "the cluster forbids "+object+": "+reason,
			"The object may be right: kubectl label namespace NAMESPACE pod-security.kubernetes.io/enforce=LEVEL allows more there; or make the pods require less. It is retried automatically.")
	case says("is forbidden: "):
		return of(Forbidden, "the cluster forbids "+object+": "+reason,
			"An admission plugin of the API server requires this, and the object may be right: change the plugin's configuration, or the object. The engine retries automatically.")
	case reason != strings.TrimSpace(message) && unanswered(reason):
		return of(Unanswered, "the API server does not answer in time about "+object+": "+reason,
			"It is retried automatically. Look at the API server, its load and its webhooks: kubectl get --raw '/readyz?verbose'")
	case message == "the watch of its kind is starting":
		return of(Unanswered, object+" waits for the first list of its kind, which the API server has not answered yet",
			"It continues automatically as soon as the API server has answered. If that takes minutes, look at its load: kubectl get --raw '/readyz?verbose'")
	}

	return Refusal{}, false
}

// unfit is the part of Of for the object or its kind.
func unfit(key objects.Key, object, message string) (Refusal, bool) {
	of := func(reason Reason, text, remedy string) (Refusal, bool) { return Refusal{reason, text, remedy}, true }
	reason := trimRequest(message)
	says := func(text string) bool { return strings.Contains(message, text) }
	switch {
	case says("status.storedVersions["):
		return of(Immutable, object+" drops a version in which objects may be stored: "+reason,
			"Keep the version until all objects are stored in another one and status.storedVersions does not name it.")
	case says("immutable") || says("may not be changed") || says("cannot change"):
		return of(Immutable, object+" has a field that cannot be changed: "+reason,
			apinames.Default.KeepField(key))
	case says("cannot be watched: "), says("the server is currently unable to handle the request"):
		return of(Unserved, object+" is of a kind whose API does not answer: "+reason,
			"See whether its API server runs: kubectl get apiservices. The phase continues automatically as soon as it answers.")
	case says("the API server does not serve"):
		kind := strings.TrimPrefix(reason, "the API server does not serve ")
		return of(Unserved, object+" is of a kind that is not served: "+kind,
			serve(key, kind)+" The phase continues automatically as soon as the kind is served.")
	case says("is being deleted"):
		return of(Deleting, object+" "+message, "It continues when the object no longer exists. The controller that set a finalizer removes it.")
	case misfit.MatchString(message):
		return of(Refused, object+" does not fit the schema of its kind: "+message, "Correct the object in the package.")
	case says("is invalid"), says("unknown field"), says("Required value"), says("failed to create typed patch"), says(" cannot be handled as a "):
		return of(Refused, "the API server refuses "+object+": "+reason, "Correct the object in the package.")
	}

	return Refusal{}, false
}

// misfit matches the results of the check against schemas, before the first write.
var misfit = regexp.MustCompile(`^\..*: (field not declared in schema|duplicate entries|expected )`)

// unanswered reports whether a message is about a request that timed out or that the API server
// postpones.
func unanswered(reason string) bool {
	for _, part := range []string{
		"request did not complete within", "unable to return a response in the time allotted", "etcdserver: ", "context deadline exceeded",
		"Client.Timeout exceeded", "Too many requests", "too many requests", "connection refused", "EOF",
	} {
		if strings.Contains(reason, part) {
			return true
		}
	}

	return false
}

// serve returns the remedy for a kind that is not served.
func serve(key objects.Key, kind string) string {
	switch {
	case strings.Contains(kind, ", but version "):
		return "Bring the object in that version."
	case !strings.Contains(key.Group, "."):
		return "Correct apiVersion and kind in the package, or upgrade the cluster: this group belongs to Kubernetes itself."
	default:
		return "Install its CustomResourceDefinition, or bring it in an earlier phase."
	}
}

var missingNamespace = regexp.MustCompile(`^namespaces "[^"]*" not found`)

func webhookFailed(object, message string) Refusal {
	name := Quoted(message)
	_, why, _ := strings.Cut(message, "failed calling webhook")
	why = strings.TrimPrefix(strings.TrimLeft(strings.TrimPrefix(why, ` "`+name+`"`), ": "), "failed to call webhook: ")
	remedy := "Its server has to run and to be reachable from the API server: "
	if strings.Contains(why, "x509: ") || strings.Contains(why, "tls: ") {
		remedy = "Its certificate and the caBundle of its configuration have to fit: "
	}

	return Refusal{
		Reason: WebhookFailed,
		Text:   "the webhook " + name + " cannot be called, so " + object + " cannot be written: " + why,
		Remedy: remedy + "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations names its Service or URL. " +
			"If the webhook was uninstalled, delete its configuration. The engine retries automatically.",
	}
}

// OfQuota returns the refusal of an object that exceeds a quota.
func OfQuota(object, reason string) Refusal {
	return Refusal{
		Reason: Quota,
		Text:   "a quota of the namespace is exhausted, so " + object + " cannot be created: " + reason,
		Remedy: "Raise the quota, or make room in it: kubectl -n NAMESPACE describe resourcequota. It is retried automatically.",
	}
}

var request = regexp.MustCompile(`^(dry-run apply|dry-run create|dry-run patch|apply|create|patch|delete|get) [^:]*: `)

func trimRequest(message string) string {
	return request.ReplaceAllString(strings.TrimSpace(message), "")
}

// WebhookReason returns a webhook's reason for a denial.
func WebhookReason(message string) string {
	if _, says, found := strings.Cut(message, "denied the request: "); found {
		return says
	}
	return message
}

var quotation = regexp.MustCompile(`"([^"]+)"`)

// Quoted returns the first name in quotation marks, which is the webhook's.
func Quoted(message string) string {
	if m := quotation.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return "that is configured"
}

func upper(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
