package rollout_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/golden"
	"lockstep.run/lockstep/test/require"
)

func TestRolloutHistory(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Revised(nil)...)
	want := "REVISION  SUCCESSFUL  CHANGE-CAUSE                   VERSION  IMAGE\n" +
		"1         True        Installing web package.        1.2.0    example.com/web:v1\n" +
		"2         False       Package source image changed.           example.com/web:v2\n"
	for _, args := range [][]string{{"web"}, {"package/web"}, {"package", "web"}, {"objectdeployment/web"}, {"od", "web"}} {
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"rollout", "history"}, args...)...); got != (clitest.Result{Code: 0, Out: want, Err: ""}) {
			t.Errorf("%v: %+v", args, got)
		}
	}
	wide := clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", "history", "web", "-o", "wide")
	if !strings.Contains(wide.Out, "CREATED") || strings.Contains(wide.Out, clustertest.SecretValue) {
		t.Errorf("the wide table:\n%s%s", wide.Out, wide.Err)
	}
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", "history", "web", "-o", "json")
	var list struct {
		Kind  string
		Items []corev1alpha1.ObjectSet
	}
	if err := json.Unmarshal([]byte(got.Out), &list); err != nil || list.Kind != "List" || len(list.Items) != 2 || list.Items[1].Kind != "ObjectSet" {
		t.Errorf("%v, %+v", err, got)
	}
	one := clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", "history", "web", "--revision", "1")
	if !strings.HasPrefix(one.Out, "apiVersion: package-operator.run/v1alpha1\nkind: ObjectSet\n") || !strings.Contains(one.Out, "image: web:v1") {
		t.Errorf("got %s", one.Out)
	}
	for _, r := range []clitest.Result{got, one} {
		if strings.Contains(r.Out, clustertest.SecretValue) || strings.Contains(r.Out, "\x1b") {
			t.Errorf("got %s", r.Out)
		}
	}
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", "history", "web", "--revision", "3"); got != (clitest.Result{Code: 1, Out: "", Err: "Error: revision not found: package shop/web has no revision 3; it has: 1, 2\n"}) {
		t.Errorf("got %+v", got)
	}
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", "history", "web", "-o", "name"); got.Out != "objectset.package-operator.run/web-1\nobjectset.package-operator.run/web-2\n" {
		t.Errorf("got %+v", got)
	}
}

func TestRolloutDiff(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Revised(nil)...)
	want := `package shop/web  revision 1 → 2
~ phases  deploy → config, deploy
~ Deployment.apps shop/web  phase deploy
    spec.template.spec.containers[name=side]       + {"image":"s","name":"side"}
    spec.template.spec.containers[name=web].image  "web:v1" → "web:v2"
~ Secret shop/s  phase deploy
    data.k  (hidden) → (hidden)
- ConfigMap shop/old\u001b[31m  phase deploy
`
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", "diff", "web")
	if diff := cmp.Diff(clitest.Result{Code: 0, Out: want, Err: ""}, got, cmp.AllowUnexported(clitest.Result{})); diff != "" {
		t.Error(diff)
	}
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", "diff", "web", "-o", "json", "|jq", ".objects[0].fields[1].after, (.objects | length)"); got.Out != "web:v2\n3\n" {
		t.Errorf("got %+v", got)
	}
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", "diff", "web", "--from-revision", "2"); got.Out != "package shop/web  revision 2 → 2\nno difference\n" {
		t.Errorf("got %+v", got)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no earlier":  {[]string{"web", "--to-revision", "1"}, "package shop/web has no revision before 1"},
		"no such":     {[]string{"web", "--from-revision", "9"}, "revision not found"},
		"negative":    {[]string{"web", "--to-revision=-1"}, "arguments invalid: --to-revision must be positive"},
		"no resource": {nil, "arguments invalid: RESOURCE is missing"},
		"bad kind":    {[]string{"pod/web"}, "is not the name of an object with revisions"},
		"nothing":     {[]string{"nope"}, "there is neither a package nope in namespace shop nor a clusterpackage"},
		"no such od":  {[]string{"od/nope"}, "there is no objectdeployment shop/nope"},
	} {
		got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"rollout", "diff"}, tc.args...)...)
		if got.Code != 1 || !strings.Contains(got.Err, tc.want) {
			t.Errorf("%s: got %+v, want %q", name, got, tc.want)
		}
	}
}

func TestRolloutUndo(t *testing.T) {
	t.Parallel()
	all := clustertest.Revised(nil)
	// An earlier revision had sensitive values; these two do not.
	for _, obj := range all {
		if set, is := obj.(*corev1alpha1.ObjectSet); is {
			metav1.SetMetaDataAnnotation(&set.ObjectMeta, corev1alpha1.SecretSlicedAnnotation, "true")
		}
	}
	c := clustertest.FakeCluster(t, all...)
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", "undo", "web", "--wait=false")
	want := "package shop/web changed: image example.com/web:v2 → example.com/web@" + clustertest.DigestOne + ", component \"front\" → \"\", configuration (revision 1)\n"
	if got != (clitest.Result{Code: 0, Out: want, Err: ""}) {
		t.Errorf("got %+v", got)
	}
	pkg, err := c.Read(t.Context(), c.Target(corev1alpha1.ScopeNamespaced, "web"))
	require.NoError(t, err)
	require.Equal(t, corev1alpha1.PackageSpec{Image: "example.com/web@" + clustertest.DigestOne, Config: clustertest.Raw(`{"color":"blue"}`)}, *pkg.PackageSpec())
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", "undo", "web", "--to-revision", "1", "--wait=false"); got.Out != "package shop/web is already up to date (revision 1)\n" {
		t.Errorf("got %+v", got)
	}
}

// After an automatic rollback, the spec returns to the revision in charge. Revisions that were
// rejected, or that never succeeded, are skipped.
func TestRolloutUndoPassesOverBadRevisions(t *testing.T) {
	t.Parallel()
	succeeded := []metav1.Condition{clustertest.Condition("Succeeded", "True", "RolloutSuccess", "")}
	third := func(succeeds bool, rejected ...corev1alpha1.RejectedContent) []client.Object {
		all := clustertest.Revised(func(_ *corev1alpha1.Package, dep *corev1alpha1.ObjectDeployment) { dep.Status.Rejected = rejected })
		two := all[3].(*corev1alpha1.ObjectSet)
		two.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
		two.Annotations[corev1alpha1.HashAnnotation] = "two"
		if succeeds {
			two.Status.Conditions = succeeded
		}
		return append(all, clustertest.Revision(3, two.Annotations, clustertest.PhaseOf("deploy")))
	}
	rolledBack := clustertest.Revised(func(_ *corev1alpha1.Package, dep *corev1alpha1.ObjectDeployment) {
		dep.Status.Conditions = []metav1.Condition{clustertest.Condition(corev1alpha1.ConditionRolledBack, "True", "ProgressDeadlineExceeded", "")}
	})
	one, two := rolledBack[2].(*corev1alpha1.ObjectSet), rolledBack[3].(*corev1alpha1.ObjectSet)
	one.Spec.LifecycleState, one.Spec.Revision, one.Annotations[corev1alpha1.RolledBackFromAnnotation] = corev1alpha1.ObjectSetLifecycleStateActive, 3, "2"
	two.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
	rejectedTwo := corev1alpha1.RejectedContent{TemplateHash: "two", Digest: two.Annotations[corev1alpha1.PackageDigestAnnotation]}
	none := third(false)
	none[2].(*corev1alpha1.ObjectSet).Status.Conditions = nil
	toOne := "package shop/web changed: image example.com/web:v2 → example.com/web@" + clustertest.DigestOne
	for name, tc := range map[string]struct {
		objects   []client.Object
		out, note string
	}{
		"rolled back by itself":    {rolledBack, toOne + `, component "front" → "", configuration (revision 3)`, "note: the rollout was rolled back automatically; setting the spec to revision 3, which is in charge"},
		"the last one succeeded":   {third(true), "(revision 2)", ""},
		"the last one never did":   {third(false), toOne, ""},
		"the last one is rejected": {third(true, rejectedTwo), toOne, ""},
		"none succeeded":           {none, "", "Error: no revision of package shop/web before 3 has succeeded without being rejected. To go back to another one (2, 1) anyway, name it with --to-revision\n"},
	} {
		got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t, tc.objects...)), "", "rollout", "undo", "web", "--wait=false")
		if !strings.Contains(got.Out, tc.out) || !strings.Contains(got.Err, tc.note) || (got.Code == 0) != (tc.out != "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestRolloutUndoTakesAConfigurationAway(t *testing.T) {
	t.Parallel()
	objects := clustertest.Revised(nil)
	objects[2].(*corev1alpha1.ObjectSet).Annotations[corev1alpha1.PackageConfigAnnotation] = "null"
	c := clustertest.FakeCluster(t, objects...)
	require.Contains(t, clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", "undo", "web", "--wait=false").Out, "no configuration")
	pkg, err := c.Read(t.Context(), c.Target(corev1alpha1.ScopeNamespaced, "web"))
	if err != nil || pkg.PackageSpec().Config != nil {
		t.Errorf("%v, %v", pkg.PackageSpec().Config, err)
	}
}

func TestRolloutUndoRefuses(t *testing.T) {
	t.Parallel()
	secret := func(sensitive *bool) func(*corev1alpha1.Package, *corev1alpha1.ObjectDeployment) {
		return func(pkg *corev1alpha1.Package, _ *corev1alpha1.ObjectDeployment) {
			pkg.Spec.ConfigFrom = []corev1alpha1.ValueSource{{SecretKeyRef: &corev1alpha1.SecretKeyReference{Name: "access", Key: "k", Sensitive: sensitive}}}
		}
	}
	for name, tc := range map[string]struct {
		change func(*corev1alpha1.Package, *corev1alpha1.ObjectDeployment)
		sets   func(one *corev1alpha1.ObjectSet)
		args   []string
		want   string
	}{
		"sensitive configuration": {change: secret(nil), want: "its configuration comes from the Secret access, whose earlier values are not kept"},
		"sensitive objects": {sets: func(one *corev1alpha1.ObjectSet) { one.Spec.Phases[0].SecretSlices = []string{"x"} },
			want: "it has sensitive values, which are not kept"},
		"packageRef": {
			change: func(pkg *corev1alpha1.Package, _ *corev1alpha1.ObjectDeployment) {
				pkg.Spec.Image, pkg.Spec.PackageRef = "", &corev1alpha1.PackageReference{Name: "web.example.com"}
			},
			sets: func(one *corev1alpha1.ObjectSet) { one.Labels[corev1alpha1.PackageVersionLabel] = "1.0.0_a" },
			want: "pin its version: kubectl package upgrade package/web -n shop --version 1.0.0+a --allow-downgrade",
		},
		"no digest":   {sets: func(one *corev1alpha1.ObjectSet) { delete(one.Annotations, corev1alpha1.PackageDigestAnnotation) }, want: "does not record the digest of example.com/web:v1"},
		"no image":    {sets: func(one *corev1alpha1.ObjectSet) { one.Annotations = nil }, want: "does not record its image"},
		"bad config":  {sets: func(one *corev1alpha1.ObjectSet) { one.Annotations[corev1alpha1.PackageConfigAnnotation] = "{" }, want: "records a configuration that cannot be read"},
		"no earlier":  {args: []string{"--to-revision", "9"}, want: "revision not found"},
		"not its own": {change: func(_ *corev1alpha1.Package, dep *corev1alpha1.ObjectDeployment) { dep.OwnerReferences = nil }, want: "has no revision yet: the deployment of the same name belongs to another owner"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := clustertest.Revised(tc.change)
			if tc.sets != nil {
				tc.sets(objects[2].(*corev1alpha1.ObjectSet))
			}
			c := clustertest.FakeCluster(t, objects...)
			got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"rollout", "undo", "package/web"}, tc.args...)...)
			if got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
	// Values that are not marked sensitive are restored as far as they belong to the package.
	c := clustertest.FakeCluster(t, clustertest.Revised(secret(ptr.To(false)))...)
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", "undo", "web", "--wait=false"); got.Code != 0 || !strings.HasPrefix(got.Err, "note: values of spec.configFrom are the current ones of its sources") {
		t.Errorf("got %+v", got)
	}
}

func TestRolloutStatus(t *testing.T) {
	t.Parallel()
	paused := clustertest.Blocked()
	paused.Conditions = append(paused.Conditions, clustertest.Condition("Paused", "True", "Paused", "paused by a user"))
	for name, tc := range map[string]struct {
		status corev1alpha1.PackageStatus
		args   []string
		code   int
		want   string
	}{
		"complete":            {clustertest.Available(), nil, 0, "package shop/web successfully rolled out: revision 1\n"},
		"complete, not watch": {clustertest.Available(), []string{"--watch=false"}, 0, "package shop/web successfully rolled out: revision 1\n"},
		"blocked":             {clustertest.Blocked(), []string{"--timeout", "1s"}, 1, "package shop/web is not rolled out after "},
		"blocked, not watch":  {clustertest.Blocked(), []string{"--watch=false"}, 1, "package shop/web is not rolled out: phase deploy waits for:\n  Deployment web: no replicas"},
		"paused":              {paused, nil, 1, "package shop/web is not rolled out: "},
		"bad timeout":         {clustertest.Available(), []string{"--timeout", "0s"}, 1, "--timeout must be positive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clustertest.FakeCluster(t, clustertest.Revised(func(pkg *corev1alpha1.Package, _ *corev1alpha1.ObjectDeployment) { pkg.Status = tc.status })...)
			got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"rollout", "status", "web"}, tc.args...)...)
			if got.Code != tc.code || !strings.Contains(got.Out+got.Err, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

// Undo of a spec that was never rolled out returns to the one in charge.
func TestRolloutUndoOfASpecThatCannotBeHad(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		image     string
		condition metav1.Condition
		want      string
	}{
		"cannot be pulled": {"example.com/web:v3", clustertest.Condition("Unpacked", "False", "ImagePullBackOff", "image not found"), "(revision 2)\n"},
		"invalid":          {"example.com/web:v3", clustertest.Condition("Invalid", "True", "ConfigInvalid", "spec.config.x"), "(revision 2)\n"},
		"it is the content of the newest revision": {"example.com/web:v2", clustertest.Condition("Unpacked", "False", "ImagePullBackOff", "image not found"), "(revision 1)\n"},
		"rolled out, and not available":            {"example.com/web:v3", clustertest.Condition("Available", "False", "ObjectSetUnready", "it waits"), "(revision 1)\n"},
	} {
		c := clustertest.FakeCluster(t, clustertest.Revised(func(pkg *corev1alpha1.Package, _ *corev1alpha1.ObjectDeployment) {
			pkg.Spec.Image = tc.image
			pkg.Status.Conditions = []metav1.Condition{tc.condition}
			pkg.Status.ObservedGeneration = 1
		})...)
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", "undo", "web", "--wait=false"); got.Code != 0 || !strings.HasSuffix(got.Out, tc.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Revised(nil)...)
	for _, command := range []string{"diff", "history"} {
		golden.JSON(t, "rollout-"+command, clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", command, "web", "-o", "json").Out)
	}
}

func TestRolloutTimeline(t *testing.T) {
	t.Parallel()
	at := func(ms int64) *metav1.MicroTime {
		m := metav1.NewMicroTime(time.Unix(1_700_000_000, 0).Add(time.Duration(ms) * time.Millisecond))
		return &m
	}
	objects := clustertest.Revised(nil)
	for _, obj := range objects {
		if set, is := obj.(*corev1alpha1.ObjectSet); is && set.Name == "web-1" {
			set.Status.Timeline = []corev1alpha1.PhaseTimes{
				{Name: "crds", OpenedAt: at(0), AppliedAt: at(250), ReadyAt: at(1250), WaitedFor: "CustomResourceDefinition shops: not \x1b[31mestablished"},
				{Name: "app", OpenedAt: at(1250), AppliedAt: at(91_250)},
				{Name: "back", OpenedAt: at(-500), AppliedAt: at(-1500), ReadyAt: at(-2000)}, // by a clock that is behind
				{Name: "last"},
			}
		}
	}
	c := clustertest.FakeCluster(t, objects...)
	run := func(args ...string) clitest.Result {
		return clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"rollout", "history", "web", "--timeline"}, args...)...)
	}
	want := "Revision 1, which started at 2023-11-14T22:13:20Z:\n" +
		"PHASE  OPENED  APPLIED IN  READY AFTER  WAITED FOR\n" +
		"crds   +0s     250ms       1s           CustomResourceDefinition shops: not ?[31mestablished\n" +
		"app    +1.25s  1m30s\n" +
		"back   +0s     0s          0s\n" +
		"last\n"
	got := run("--revision", "1")
	if got.Code != 0 || strings.Contains(got.Out, "\x1b") || columns(got.Out) != columns(strings.ReplaceAll(want, "?[31m", escape(got.Out))) {
		t.Errorf("got %q %s, want %q", got.Out, got.Err, want)
	}
	got = run("--revision", "1", "-o", "json")
	golden.JSON(t, "rollout-timeline", got.Out)
	var timeline struct {
		Revision int64
		Phases   []struct {
			Name, WaitedFor                 string
			OpenedAt                        time.Time
			ApplyingSeconds, WaitingSeconds *float64
		}
	}
	if err := json.Unmarshal([]byte(got.Out), &timeline); err != nil || timeline.Revision != 1 || len(timeline.Phases) != 4 ||
		*timeline.Phases[1].ApplyingSeconds != 90 || timeline.Phases[1].WaitingSeconds != nil || timeline.Phases[0].OpenedAt.IsZero() {
		t.Errorf("%v: %s %s", err, got.Out, got.Err)
	}
	if got := run(); got.Code != 1 || !strings.Contains(got.Err, "revision 2 has no timeline: no phase of it was opened") {
		t.Errorf("got %+v", got)
	}
}

// columns returns a text without trailing spaces on its lines.
func columns(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// escape returns the replacement of a control sequence.
func escape(out string) string {
	_, rest, _ := strings.Cut(out, "not ")
	text, _, _ := strings.Cut(rest, "established")
	return text
}
