package diagnose

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases/drift"
)

// refused reports whether the message of a blocking object is about a refused write.
func refused(key objects.Key, object, message string) (cause, bool) {
	of := func(reason Reason, text, remedy string) (cause, bool) {
		return cause{weight: weightCertain, reason: reason, object: short(key), text: text, remedy: remedy}, true
	}
	reason := trimRequest(message)
	says := func(text string) bool { return strings.Contains(message, text) }
	switch {
	case strings.HasPrefix(message, ruleFailed): // a rule may contain any text
		return cause{}, false
	case says("is controlled by "), says("exists already and nothing controls it"), says("belongs to ") && says("leave it out here"):
		what, remedy, _ := strings.Cut(message, ": ")
		return of(ReasonCollision, object+" "+what, upper(remedy))
	case says(" again and again"):
		what, remedy, _ := strings.Cut(message, ": ")
		return of(ReasonContention, object+": "+what, upper(remedy))
	case says("failed calling webhook"):
		return webhookFailed(object, message), true
	case says("admission webhook ") && says("denied the request"):
		name := quoted(message)
		return of(ReasonWebhook, "the webhook "+name+" refuses "+object+": "+webhookReason(reason),
			"Change the object as the webhook asks, or its configuration: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations. The engine tries again by itself.")
	case says("ValidatingAdmissionPolicy ") && says("denied request"):
		return of(ReasonWebhook, "an admission policy refuses "+object+": "+reason, "Change the object as the policy asks, or the policy. The engine tries again by itself.")
	case says("because it is being terminated"):
		return of(ReasonDeleting, "the namespace of "+object+" is being deleted: "+reason,
			"It is recreated when it is gone, where the package brings it; else create it again then. What holds it: kubectl get namespace NAMESPACE -o yaml")
	case missingNamespace.MatchString(reason):
		return of(ReasonNoNamespace, "the namespace of "+object+" does not exist",
			"Create it: kubectl create namespace NAMESPACE, or bring it in an earlier phase of the package. It is tried again by itself.")
	case says("exceeded quota"):
		return quotaCause(object, reason), true
	case strings.HasPrefix(message, "ServiceAccount ") && (says(" may not ") || says(" does not exist: ")):
		what, remedy, _ := strings.Cut(message, ": ")
		return of(ReasonForbidden, object+" cannot be written: "+what, upper(remedy))
	case says("is forbidden") && (says("cannot ") || says("attempting to grant")):
		return of(ReasonForbidden, "the engine may not write "+object+": "+reason,
			"Give the user of the request the missing rights, in the cluster of the object: the manager's service account, or with a targetRef that of the kubeconfig. It cannot grant rights that it does not have.")
	}
	if c, is := refusedByCluster(key, object, message); is {
		return c, true
	}
	return unfit(key, object, message)
}

// refusedByCluster is the part of refused about what the cluster forbids or does not answer, whatever the object.
func refusedByCluster(key objects.Key, object, message string) (cause, bool) {
	of := func(reason Reason, text, remedy string) (cause, bool) {
		return cause{weight: weightCertain, reason: reason, object: short(key), text: text, remedy: remedy}, true
	}
	reason := trimRequest(message)
	says := func(text string) bool { return strings.Contains(message, text) }
	switch {
	case says("disallowed by cluster policy"):
		return of(ReasonForbidden, "the cluster forbids "+object+": "+reason,
			"The object may be right: have the cluster allow it (privileged containers: kube-apiserver --allow-privileged), or leave it out of the package. The engine tries again by itself.")
	case says("violates PodSecurity "):
		return of(ReasonForbidden, "the cluster forbids "+object+": "+reason,
			"The object may be right: kubectl label namespace NAMESPACE pod-security.kubernetes.io/enforce=LEVEL allows more there; or have the pods ask for less. It is tried again by itself.")
	case says("is forbidden: "):
		return of(ReasonForbidden, "the cluster forbids "+object+": "+reason,
			"An admission plugin of the API server says so, and the object may be right: change what it says there, or the object. The engine tries again by itself.")
	case reason != strings.TrimSpace(message) && unanswered(reason):
		return of(ReasonUnanswered, "the API server does not answer in time about "+object+": "+reason,
			"It is tried again by itself. Look at the API server, its load and its webhooks: kubectl get --raw '/readyz?verbose'")
	case message == "the watch of its kind is starting":
		return of(ReasonUnanswered, object+" waits for the first list of its kind, which the API server has not answered yet",
			"It goes on by itself as soon as the API server has answered. Look at its load where that takes minutes: kubectl get --raw '/readyz?verbose'")
	}
	return cause{}, false
}

// unfit is the part of refused about the object or its kind.
func unfit(key objects.Key, object, message string) (cause, bool) {
	of := func(reason Reason, text, remedy string) (cause, bool) {
		return cause{weight: weightCertain, reason: reason, object: short(key), text: text, remedy: remedy}, true
	}
	reason := trimRequest(message)
	says := func(text string) bool { return strings.Contains(message, text) }
	switch {
	case says("immutable") || says("may not be changed") || says("cannot change"):
		return of(ReasonImmutable, object+" has a field that cannot be changed: "+reason,
			apinames.Default.KeepField(key))
	case says("cannot be watched: "), says("the server is currently unable to handle the request"):
		return of(ReasonUnserved, object+" is of a kind whose API does not answer: "+reason,
			"Look whether what serves it is there: kubectl get apiservices. The phase goes on by itself as soon as it answers.")
	case says("the API server does not serve"):
		kind, advice := unserved(reason)
		if !strings.Contains(key.Group, ".") {
			advice = "Correct apiVersion and kind in the package, or upgrade the cluster: the kinds of this group are those of Kubernetes itself."
		}
		return of(ReasonUnserved, object+" is of a kind that is not served: "+kind,
			strings.TrimSpace(advice+" The phase goes on by itself as soon as the kind is served."))
	case says("is being deleted"):
		return of(ReasonDeleting, object+" "+message, "It goes on when the object is gone. A finalizer is removed by whoever set it.")
	case misfit.MatchString(message):
		return of(ReasonRefused, object+" does not fit the schema of its kind: "+message, "Correct the object in the package.")
	case says("is invalid"), says("unknown field"), says("Required value"), says("failed to create typed patch"):
		return of(ReasonRefused, "the API server refuses "+object+": "+reason, "Correct the object in the package.")
	}
	return cause{}, false
}

// misfit is what the check against schemas says of a field, before the first write.
var misfit = regexp.MustCompile(`^\..*: (field not declared in schema|duplicate entries|expected )`)

// unanswered reports whether a message is of a request that timed out, or that the API server puts off.
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

// unserved returns the kind that is not served, and a remedy, which may be empty.
func unserved(reason string) (kind, remedy string) {
	kind = strings.TrimPrefix(reason, "the API server does not serve ")
	if what, advice, found := strings.Cut(kind, ": "); found && (strings.HasPrefix(advice, "install ") || strings.HasPrefix(advice, "bring ")) {
		return what, upper(advice)
	}
	return kind, ""
}

var missingNamespace = regexp.MustCompile(`^namespaces "[^"]*" not found`)

func webhookFailed(object, message string) cause {
	name := quoted(message)
	_, why, _ := strings.Cut(message, "failed calling webhook")
	why = strings.TrimPrefix(strings.TrimLeft(strings.TrimPrefix(why, ` "`+name+`"`), ": "), "failed to call webhook: ")
	remedy := "What serves it has to run and to be reachable from the API server: "
	if strings.Contains(why, "x509: ") || strings.Contains(why, "tls: ") {
		remedy = "Its certificate and the caBundle of its configuration have to fit: "
	}
	return cause{
		weight: weightCertain, reason: ReasonWebhookFailed, object: object,
		text: "the webhook " + name + " cannot be called, so " + object + " cannot be written: " + why,
		remedy: remedy + "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations names its Service or URL. " +
			"Where what served it was uninstalled, delete its configuration. The engine tries again by itself.",
	}
}

func quotaCause(object, reason string) cause {
	return cause{
		weight: weightCertain, reason: ReasonQuota, object: object,
		text:   "a quota of the namespace is exhausted, so " + object + " cannot be created: " + reason,
		remedy: "Raise the quota, or make room in it: kubectl -n NAMESPACE describe resourcequota. It is tried again by itself.",
	}
}

var request = regexp.MustCompile(`^(dry-run apply|dry-run create|dry-run patch|apply|create|patch|delete|get) [^:]*: `)

func trimRequest(message string) string {
	return request.ReplaceAllString(strings.TrimSpace(message), "")
}

func webhookReason(message string) string {
	if _, says, found := strings.Cut(message, "denied the request: "); found {
		return says
	}
	return message
}

var quotation = regexp.MustCompile(`"([^"]+)"`)

func quoted(message string) string {
	if m := quotation.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return "that is configured"
}

func short(key objects.Key) string {
	key.Group = ""
	return key.String()
}

func upper(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// inNamespace replaces NAMESPACE in the remedy.
func (c cause) inNamespace(namespace string) cause {
	if namespace == "" {
		namespace = "NAMESPACE"
	}
	c.remedy = strings.ReplaceAll(c.remedy, "NAMESPACE", namespace)
	return c
}

const webhooksExamined = 500

// dependency finds that an object is of a package that was installed for others: that one releases nothing.
func (e *explainer) dependency(ctx context.Context, key objects.Key, c *cause) error {
	live, err := e.read(ctx, key)
	if err != nil || live == nil {
		return err
	}
	ref := apinames.Default.ControllerOf(live)
	if ref == nil || ref.Remote {
		return nil
	}
	holder := progress.Target{Scope: corev1alpha1.ScopeCluster, Name: ref.Name}
	if ref.Kind == corev1alpha1.ScopeNamespaced.Kind("ObjectDeployment") {
		holder.Scope, holder.Namespace = corev1alpha1.ScopeNamespaced, key.Namespace
	}
	pkg := holder.Scope.NewPackage()
	err = e.home.Get(ctx, client.ObjectKey{Namespace: holder.Namespace, Name: holder.Name}, pkg)
	if pkg.GetLabels()[corev1alpha1.GeneratedLabel] == "true" {
		c.remedy = fmt.Sprintf("The %s is installed as a dependency. Delete this package and use that one; to decide on its version and values yourself: kubectl annotate %s %s=true",
			holder, holder.Flags(), corev1alpha1.AdoptAnnotation)
	}
	return readable(holder.String(), client.IgnoreNotFound(err))
}

// obstacle finds the package's own policy or webhook that denied a write, and that a later phase
// removes or changes.
func (e *explainer) obstacle(ctx context.Context, message string) (objects.Key, bool, error) {
	denial, denied := apply.DeniedBy(message)
	if !denied || e.deployment == nil || e.client == nil {
		return objects.Key{}, false, nil
	}
	for _, kind := range denial.Kinds() {
		key := objects.Key{Group: "admissionregistration.k8s.io", Kind: kind}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: key.Group, Version: e.version(key), Kind: kind + "List"})
		own := client.MatchingLabels{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue}
		err := e.client.List(ctx, list, own, client.Limit(webhooksExamined))
		if err = readable(kind, err); err != nil && !meta.IsNoMatchError(err) {
			return key, false, err
		}
		for i := range list.Items {
			live := &list.Items[i]
			key.Name = live.GetName()
			ref := apinames.Default.ControllerOf(live)
			if ref == nil || ref.UID != e.deployment.GetUID() || !denial.Is(key, live) {
				continue
			}
			stays, err := e.desires(ctx, key, live)
			return key, !stays, err
		}
	}
	return objects.Key{}, false, nil
}

// desires reports whether the newest revision has an object as it is.
func (e *explainer) desires(ctx context.Context, key objects.Key, live *unstructured.Unstructured) (bool, error) {
	if e.set == nil {
		return true, nil
	}
	all, err := cluster.ReadObjects(ctx, e.home, e.set)
	if err != nil {
		return true, readable("the newest revision", err)
	}
	for _, o := range all {
		if o.Key.Kind == key.Kind && o.Key.Name == key.Name {
			delete(o.Value, "metadata")
			return drift.Matches(apinames.Default, o.Value, live.Object, nil), nil
		}
	}
	return false, nil
}
