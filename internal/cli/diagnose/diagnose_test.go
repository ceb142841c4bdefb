package diagnose

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/test/require"
)

var shopConfig = objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: "web"}

// TestRefused reads the messages of the engine and API servers about refused writes.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		message string
		reason  Reason
		cause   string
		remedy  string
	}{
		{phases.Collision(&objects.Reference{OwnerReference: metav1.OwnerReference{Kind: "Deployment", Name: "web"}}, objects.Owner{Names: apinames.Default}),
			ReasonCollision, "ConfigMap shop/web is controlled by Deployment web", "Leave it out here"},
		{(&claims.Conflict{Holder: objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "other"}}}).Reason(),
			ReasonCollision, "belongs to ObjectDeployment shop/other", "Leave it out here"},
		{(&claims.Conflict{
			Holder: objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "other"}},
			Adopt:  "kubectl annotate package/other -n shop package-operator.run/adopt=true",
		}).Reason(),
			ReasonCollision, "which is installed as a dependency",
			"to decide on its version and values, make it your own (kubectl annotate package/other -n shop package-operator.run/adopt=true)"},
		{phases.Collision(nil, objects.Owner{Names: apinames.Default}), ReasonCollision, "ConfigMap shop/web exists already and nothing controls it", "Take it over by kubectl package adopt"},
		{"field manager tuner changes .data.level back again and again; corrected again after a pause: let only one of both set the field", ReasonContention,
			"ConfigMap shop/web: field manager tuner changes .data.level back again and again", "Let only one of both set the field"},
		{`create ConfigMap shop/web: admission webhook "costs.example.com" denied the request: a cost centre is missing`, ReasonWebhook,
			"the webhook costs.example.com refuses ConfigMap shop/web: a cost centre is missing", "Change the object"},
		{
			`create ConfigMap shop/web: Internal error occurred: failed calling webhook "costs.example.com": failed to call webhook: Post "https://costs.ops.svc:443/?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused`,
			ReasonWebhookFailed, "the webhook costs.example.com cannot be called, so ConfigMap shop/web cannot be written: Post \"https://costs.ops.svc:443/?timeout=10s\": dial tcp", "has to run and to be reachable",
		},
		{`create ConfigMap shop/web: Internal error occurred: failed calling webhook "costs.example.com": failed to call webhook: Post "https://costs.ops.svc:443/?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown authority`,
			ReasonWebhookFailed, "cannot be called", "Its certificate and the caBundle"},
		{`create ConfigMap shop/web: namespaces "shop" not found`, ReasonNoNamespace, "the namespace of ConfigMap shop/web does not exist", "kubectl create namespace shop,"},
		{`create ConfigMap shop/web: configmaps "web" is forbidden: unable to create new content in namespace shop because it is being terminated`, ReasonDeleting,
			"the namespace of ConfigMap shop/web is being deleted", "kubectl get namespace shop -o yaml"},
		{"cannot be watched: the server is currently unable to handle the request", ReasonUnserved, "is of a kind whose API does not answer", "kubectl get apiservices"},
		{`create ConfigMap shop/web: configmaps "web" is forbidden: exceeded quota: small, requested: configmaps=1, used: configmaps=2, limited: configmaps=2`,
			ReasonQuota, "exceeded quota: small", "kubectl -n shop describe resourcequota"},
		{`apply ConfigMap shop/web: configmaps "web" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "configmaps" in API group ""`, ReasonForbidden,
			"the engine is not allowed to write ConfigMap shop/web", "service account"},
		{"ServiceAccount shop/deployer may not create configmaps: grant it that right; kubectl auth can-i create configmaps -n shop --as=system:serviceaccount:shop:deployer",
			ReasonForbidden, "ConfigMap shop/web cannot be written: ServiceAccount shop/deployer may not create configmaps", "Grant it that right; kubectl auth can-i"},
		{"ServiceAccount shop/deployer does not exist: create it, with the rights for the objects of the package, or name another one in spec.serviceAccountName",
			ReasonForbidden, "ServiceAccount shop/deployer does not exist", "Create it, with the rights"},
		{`dry-run apply apps Deployment shop/web: Deployment.apps "web" is invalid: spec.selector: Invalid value: {}: field is immutable`, ReasonImmutable,
			"has a field that cannot be changed", "Keep the field"},
		{`dry-run apply apps StatefulSet shop/web: StatefulSet.apps "web" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden (immutable in an object that exists)`,
			ReasonImmutable, "has a field that cannot be changed", "Keep the field"},
		{`apply CustomResourceDefinition a.b: CustomResourceDefinition "a.b" is invalid: status.storedVersions[0]: Invalid value: "v1alpha1": missing from spec.versions (immutable in an object that exists)`,
			ReasonImmutable, "drops a version in which objects may be stored", "Keep the version until all objects are stored in another one"},
		{`create apps DaemonSet shop/web: DaemonSet.apps "web" is invalid: spec.template.spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy`,
			ReasonForbidden, "the cluster forbids ConfigMap shop/web", "The object may be right: have the cluster allow it"},
		{`create Pod shop/web: pods "web" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`, ReasonForbidden,
			"the cluster forbids ConfigMap shop/web", "kubectl label namespace shop pod-security.kubernetes.io/enforce=LEVEL"},
		{`create Pod shop/web: pods "web" is forbidden: node selectors conflict`, ReasonForbidden, "the cluster forbids ConfigMap shop/web", "An admission plugin"},
		{`dry-run apply ConfigMap shop/web: the server was unable to return a response in the time allotted, but may still be processing the request`, ReasonUnanswered,
			"the API server does not answer in time about ConfigMap shop/web", "It is retried automatically"},
		{`.spec.template.spec.containers[name="main"].imagee: field not declared in schema, did you mean "image"?`, ReasonRefused,
			"ConfigMap shop/web does not fit the schema of its kind: .spec.template", "Correct the object in the package."},
		{`create coordination.k8s.io Lease shop/web: Lease in version "v1" cannot be handled as a Lease: parsing time "2026-01-01": cannot parse "" as "T"`, ReasonRefused,
			"the API server refuses ConfigMap shop/web: Lease in version", "Correct the object in the package."},
		{"the API server does not serve example.com/v1 Foo, but version v2 of it", ReasonUnserved,
			"ConfigMap shop/web is of a kind that is not served: example.com/v1 Foo, but version v2 of it", "Bring the object in that version."},
		{"the watch of its kind is starting", ReasonUnanswered, "ConfigMap shop/web waits for the first list of its kind", "kubectl get --raw"},
		{"is being deleted; held by finalizer example.com/hold", ReasonDeleting, "held by finalizer example.com/hold", "finalizer"},
	} {
		c, is := refused(shopConfig, objectdiff.Short(shopConfig), tc.message)
		if !is || c.reason != tc.reason || !strings.Contains(c.text, tc.cause) || !strings.Contains(c.remedy, tc.remedy) {
			t.Errorf("%s:\ngot %v %s: %s / %s", tc.message, is, c.reason, c.text, c.remedy)
		}
	}
	for group, remedy := range map[string]string{
		"example.com": "Install its CustomResourceDefinition, or bring it in an earlier phase. The phase continues automatically",
		"apps":        "Correct apiVersion and kind in the package",
	} {
		key := objects.Key{Group: group, Kind: "Foo", Namespace: "shop", Name: "web"}
		message := "the API server does not serve " + group + "/v1 Foo"
		c, is := refused(key, objectdiff.Short(key), message)
		if !is || c.reason != ReasonUnserved || c.text != "Foo shop/web is of a kind that is not served: "+group+"/v1 Foo" || !strings.HasPrefix(c.remedy, remedy) {
			t.Errorf("%s: %+v", group, c)
		}
	}
	if c, is := refused(shopConfig, objectdiff.Short(shopConfig), `".status.updatedReplicas" is 1, ".status.replicas" is 3`); is {
		t.Errorf("a probe counts as a refusal: %+v", c)
	}
}

func running(name string, ready bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func waits(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func podWith(statuses ...corev1.ContainerStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/web:v9"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: statuses},
	}
}

func warning(reason, message string, age time.Duration) corev1.Event {
	return corev1.Event{
		Type: corev1.EventTypeWarning, Reason: reason, Message: message,
		InvolvedObject: corev1.ObjectReference{Namespace: "shop"}, LastTimestamp: metav1.NewTime(time.Unix(1000, 0).Add(-age)),
	}
}

// TestPod judges pods by their status and events.
func TestPod(t *testing.T) {
	t.Parallel()
	crashing := waits("CrashLoopBackOff", "back-off 5m0s")
	crashing.RestartCount = 7
	crashing.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3, Message: "no database"}
	killed := crashing
	killed.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	backOff := corev1.ContainerStatus{Name: "main", RestartCount: 2, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}
	unscheduled := podWith()
	unscheduled.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available: 2 Insufficient cpu."}}
	placed := podWith(running("main", false))
	placed.Spec.NodeName = "node"
	for _, tc := range []struct {
		reason string
		pod    *corev1.Pod
		events []corev1.Event
		want   Reason
		text   string
	}{
		{"an image that is missing", podWith(waits("ImagePullBackOff", "Back-off pulling")), nil, ReasonImagePull, "the image registry.example.com/web:v9 of container main of Pod shop/web-1 cannot be pulled: ImagePullBackOff"},
		{"a crash with its exit code", podWith(crashing), nil, ReasonCrash, "7 restarts so far: it ended with exit code 3: no database"},
		{"an end that the kubelet has not called a crash yet", podWith(backOff), nil, ReasonCrash, "main of Pod shop/web-1 crashes again and again, 2 restarts so far: it ended with exit code 0"},
		{"too little memory", podWith(killed), nil, ReasonCrash, "more memory than its limit"},
		{"a container that the kubelet ends", podWith(crashing), []corev1.Event{warning("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 503", 0)}, ReasonCrash, "7 restarts so far, because it does not pass its liveness probe: HTTP probe failed with statuscode: 503"},
		{"a probe that failed before the pod was ready", readySince(time.Unix(1000, 0)), []corev1.Event{warning("Unhealthy", "Readiness probe failed: HTTP 503", time.Hour)}, ReasonNotReady, "runs but is not ready"},
		{"a missing Secret", podWith(waits("CreateContainerConfigError", `secret "web" not found`)), nil, ReasonContainer, `cannot start: CreateContainerConfigError: secret "web" not found`},
		{"no node", unscheduled, nil, ReasonUnschedulable, "Insufficient cpu"},
		{"a probe that fails, by its event", podWith(running("main", false)), []corev1.Event{warning("Unhealthy", "Readiness probe failed: HTTP 503", 0)}, ReasonNotReady, "HTTP 503"},
		{"a volume that is missing", podWith(waits("ContainerCreating", "")), []corev1.Event{warning("FailedMount", `configmap "web" not found`, 0)}, ReasonVolume, `configmap "web" not found`},
		{"a node was found meanwhile, and a volume", placed, []corev1.Event{
			warning("FailedScheduling", "0/2 nodes are available", 0), warning("FailedMount", "not yet", 0),
		}, ReasonNotReady, "runs but is not ready"},
		{"only begun", podWith(waits("ContainerCreating", "")), nil, "", ""},
	} {
		f := pod(tc.pod, tc.events)
		if c := f.best(); c.reason != tc.want || !strings.Contains(c.text, tc.text) {
			t.Errorf("%s: %s: %s", tc.reason, c.reason, c.text)
		}
	}
}

// readySince returns a pod whose readiness ended at a time.
func readySince(at time.Time) *corev1.Pod {
	p := podWith(running("main", false))
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(at)}}
	return p
}

// TestRemediesOfPods are about failures as the kubelet reports them.
func TestRemediesOfPods(t *testing.T) {
	t.Parallel()
	crashed := func(reason string, code int32, message string) *corev1.Pod {
		s := waits("CrashLoopBackOff", "back-off 10s")
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, Message: message}
		return podWith(s)
	}
	for reason, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"memory":               {crashed("OOMKilled", 137, ""), "Raise resources.limits.memory of container main"},
		"no such program":      {crashed("StartError", 128, `exec: "/not-there": stat /not-there: no such file or directory`), "It never ran, so it has no log. Correct command and args"},
		"its own error":        {crashed("Error", 3, "panic"), "logs web-1 -c main --previous"},
		"root":                 {podWith(waits("CreateContainerConfigError", "container has runAsNonRoot and image will run as root (pod: \"web-1\", container: main)")), "Set securityContext.runAsUser"},
		"an unknown user":      {podWith(waits("CreateContainerConfigError", "container has runAsNonRoot and image has non-numeric user (web), cannot verify user is non-root")), "a number other than 0"},
		"a missing ConfigMap":  {podWith(waits("CreateContainerConfigError", `configmap "web" not found`)), "Check the references of the container"},
		"an image that is not": {podWith(waits("ErrImagePull", `registry.example.com/web:v9: not found`)), "Check that the image exists under that name"},
	} {
		f := pod(tc.pod, nil)
		require.Contains(t, f.best().remedy, tc.want, reason)
	}
	for message, want := range map[string]string{
		`pods "web-1" is forbidden: error looking up service account shop/web: serviceaccount "web" not found`: "kubectl -n shop create serviceaccount web",
		`pods "web-1" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`:            "kubectl label namespace shop pod-security.kubernetes.io/enforce=LEVEL",
	} {
		require.Contains(t, notCreated("ReplicaSet shop/web-1", "shop", message).remedy, want, message)
	}
}

// TestLostNode: a pod's own status is outdated if its node is not ready.
func TestLostNode(t *testing.T) {
	t.Parallel()
	p := readySince(time.Unix(1000, 0))
	p.Spec.NodeName, p.Labels = "node1", map[string]string{"app": "web"}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "web", UID: "set", Controller: ptr.To(true)}}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: p.Labels}
	for status, want := range map[corev1.ConditionStatus]Reason{corev1.ConditionTrue: ReasonNotReady, corev1.ConditionUnknown: ReasonNode} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1"}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Message: "Kubelet stopped posting node status."}}
		e := explainerOf(p.DeepCopy(), set, node)
		f, err := e.object(t.Context(), objects.Key{Group: "apps", Kind: "DaemonSet", Namespace: "shop", Name: "web"}, "DaemonSet shop/web", "0 of 1 are ready")
		if c := f.best(); err != nil || c.reason != want {
			t.Errorf("a node with Ready=%s: %+v, %v", status, c, err)
		}
	}
}

// TestEvents shows the latest event of each message, up to a few.
func TestEvents(t *testing.T) {
	t.Parallel()
	events := []corev1.Event{
		warning("Old", "old", time.Hour), warning("New", "new", 0), warning("New", "new", time.Minute),
		warning("Third", "third", time.Second), warning("Fourth", "fourth", time.Minute),
		{Type: corev1.EventTypeNormal, Reason: "Fine", Message: "fine"},
	}
	var got []string
	for _, f := range eventFindings("Pod shop/web", events) {
		got = append(got, f.link.Object)
	}
	require.Equal(t, "event New, event Third, event Fourth", strings.Join(got, ", "), "shows")
}

// TestConditions names the faults of a definition first.
func TestConditions(t *testing.T) {
	t.Parallel()
	key := objects.Key{Group: crd.Group, Kind: crd.Kind, Name: "gadgets.example.com"}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Established", "status": "False", "reason": "NotAccepted"},
		map[string]any{"type": "NamesAccepted", "status": "False", "message": `"Widget" is already in use`},
		map[string]any{"type": "Terminating", "status": "False"},
		map[string]any{"type": "Ready", "status": "True"},
		"garbage",
	}}}}
	f := finding{below: conditionFindings(key, u)}
	require.Equal(t, 2, len(f.below), "conditions are wrong")
	if c := f.best(); c.reason != ReasonNotEstablished || !strings.Contains(c.text, `its names are taken: "Widget" is already in use`) {
		t.Errorf("the cause is %+v", c)
	}
}

// TestWrongConditions: some conditions are bad if they are True, others if they are False.
func TestWrongConditions(t *testing.T) {
	t.Parallel()
	other := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	for _, tc := range []struct {
		reason      string
		kind        schema.GroupKind
		typ, status string
		want        bool
	}{
		{"good ones are wrong when they are not", other, "Ready", "False", true},
		{"or when it is unknown", other, "Ready", "Unknown", true},
		{"and not when they are", other, "Ready", "True", false},
		{"an approved definition is as it should be", crd, "KubernetesAPIApprovalPolicyConformant", "True", false},
		{"one that is not approved is not", crd, "KubernetesAPIApprovalPolicyConformant", "False", true},
		{"a failure that there is not", deployment, "ReplicaFailure", "False", false},
		{"a failure", deployment, "ReplicaFailure", "True", true},
		{"a namespace that is deleted without trouble", schema.GroupKind{Kind: "Namespace"}, "NamespaceDeletionContentFailure", "False", false},
		{"a namespace that something holds", schema.GroupKind{Kind: "Namespace"}, "NamespaceFinalizersRemaining", "True", true},
		{"an autoscaler within its bounds", schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, "ScalingLimited", "False", false},
		{"the rollout has stopped", other, "Progressing", "False", false},
		{"a Deployment that has given up", deployment, "Progressing", "False", true},
		{"a Job that is held", job, "Suspended", "True", true},
	} {
		require.Equal(t, tc.want, isWrong(tc.kind, tc.typ, tc.status), fmt.Sprintf("%s: %s=%s of a %s is wrong", tc.reason, tc.typ, tc.status, tc.kind.Kind))
	}
}

// TestLogs suggests the log of the previous run only if there was one.
func TestLogs(t *testing.T) {
	t.Parallel()
	crashing := waits("CrashLoopBackOff", "back-off")
	ended := corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}
	for reason, tc := range map[string]struct {
		status corev1.ContainerStatus
		want   string
	}{
		"it runs":                      {running("main", false), "logs web-1 -c main"},
		"it has ended":                 {ended, "logs web-1 -c main"},
		"it waits to be started again": {crashing, "logs web-1 -c main --previous"},
	} {
		f := pod(podWith(tc.status), nil)
		if remedy := f.best().remedy; !strings.HasSuffix(remedy, tc.want) {
			t.Errorf("%s: %s", reason, remedy)
		}
	}
}

// Jobs that were removed after they succeeded are named, because no rollout waits for them.
func TestRanBefore(t *testing.T) {
	t.Parallel()
	dep := &corev1alpha1.ObjectDeployment{}
	require.Equal(t, "", ranBefore(dep), "there are none, and it reports")
	dep.Status.Jobs = []corev1alpha1.JobRecord{
		{Group: "batch", Kind: "Job", Namespace: "shop", Name: "seed", Result: corev1alpha1.JobFailed},
		{Group: "batch", Kind: "Job", Namespace: "shop", Name: "migrate", Result: corev1alpha1.JobSucceeded},
	}
	if got, want := ranBefore(dep), "Completed earlier: Job shop/migrate"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An unavailable APIService has its own remedy.
func TestRemedyOfAnAPIService(t *testing.T) {
	t.Parallel()
	api := objects.Key{Group: apiService.Group, Kind: apiService.Kind, Name: "v1.shop.example.com"}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Available", "status": "False", "reason": "ServiceNotFound", "message": `service/api in "shop" is not present`},
	}}}}
	f := finding{below: conditionFindings(api, u)}
	if c := f.best(); c.reason != ReasonAPIService || !strings.Contains(c.text, "ServiceNotFound: service/api") || !strings.Contains(c.remedy, "kubectl get apiservice v1.shop.example.com") {
		t.Errorf("the cause is %+v", c)
	}
}

// If a rule cannot be evaluated, the message quotes it, and the rule can contain any text.
func TestRuleThatFailsIsNotRefused(t *testing.T) {
	t.Parallel()
	const message = `CEL program failed: no such key: reason, in the rule self.status.reason == "is invalid"`
	if c, is := refused(shopConfig, "ConfigMap shop/web", message); is {
		t.Errorf("got %+v", c)
	}
	f, err := (&explainer{client: fake.NewClientBuilder().Build()}).object(t.Context(), shopConfig, "ConfigMap shop/web", message)
	if err != nil || !strings.HasSuffix(f.cause.text, message) || !strings.HasPrefix(f.cause.remedy, "Correct the rule") {
		t.Errorf("got %+v, %v", f.cause, err)
	}
}

// The status of a set can show the blocking objects of a revision earlier than the package's.
func TestSetIsAheadOfThePackage(t *testing.T) {
	t.Parallel()
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1}}
	pkg.Status.ObservedGeneration = 1
	pkg.Status.Conditions = []metav1.Condition{
		{Type: corev1alpha1.ConditionUnpacked, Status: "True", ObservedGeneration: 1},
		{Type: corev1alpha1.ConditionAvailable, Status: "False", Reason: "ObjectSetUnready", ObservedGeneration: 1},
	}
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
	set.Spec.Revision = 1
	set.Status.Phases = []corev1alpha1.PhaseStatus{{Name: "deploy", State: corev1alpha1.PhaseStateProbing, Total: 1}}
	set.Status.Blocking = []corev1alpha1.BlockingObject{{Kind: "ConfigMap", Namespace: "shop", Name: "front", Phase: "deploy", Message: `"a" is "b"`}}
	snap := progress.Snapshot{Target: progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "web"}, Package: pkg, Set: set}
	d, err := Explain(t.Context(), fake.NewClientBuilder().Build(), snap, nil, nil, nil)
	if err != nil || d.Phase != "deploy" || !strings.Contains(d.Object, "front") {
		t.Errorf("%+v, %v", d, err)
	}
}

// A target that is not connected is the cause, regardless of earlier blocking objects. It is not
// read.
func TestExplainTarget(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"installed": false, "deleted": true} {
		pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", Generation: 1}}
		if deleted {
			pkg.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		pkg.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: "edge"}}
		pkg.Status.ObservedGeneration = 1
		pkg.Status.Blocking = []corev1alpha1.BlockingObject{{Kind: "ConfigMap", Namespace: "shop", Name: "web", Phase: "p", Message: "is being deleted"}}
		pkg.Status.Conditions = []metav1.Condition{
			{Type: corev1alpha1.ConditionTargetConnected, Status: "False", Reason: corev1alpha1.ReasonTargetUnreachable, Message: "No answer.", ObservedGeneration: 1},
		}
		target := progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "app"}
		d, err := Explain(t.Context(), nil, progress.Snapshot{Target: target, Package: pkg}, nil, nil, nil)
		require.NoError(t, err)
		cause, remedy := "its target is not connected: No answer.", "Check whether the target runs"
		if deleted {
			cause, remedy = "its target is not connected, so its objects there cannot be removed: No answer.", "The deletion continues automatically"
		}
		if d.Reason != ReasonTarget || d.Cause != cause || !strings.HasPrefix(d.Remedy, remedy) {
			t.Errorf("%s: %+v", name, d)
		}
		if deleted && !strings.HasSuffix(d.Remedy, "kubectl annotate package/app -n shop package-operator.run/abandon-target=true") {
			t.Errorf("do %s", d.Remedy)
		}
	}
}
