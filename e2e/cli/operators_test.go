package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// rule does what the program in the pods of a workload does, and reports whether it is ready. It runs again and again
// while the pods do.
type rule func(ctx context.Context, c client.Client) (ready bool, err error)

// operator is an input of kickstart whose workloads become ready by rules.
type operator struct {
	name string
	// rules by the label app of the pods. Those without one are ready when they have what they mount.
	rules map[string]rule
	// gated is the file of what a workload waits for; a package with it in a later phase never becomes available.
	gated string
	// webhooks are replacements that let the API server call none of them: nothing answers in these tests.
	webhooks []string
	// judge checks the state after the installation, the upgrade and undoing it.
	judge func(t *testing.T, c client.Client)
	quick bool
}

// authority is what the rules fill in.
var authority = []byte("\n")

// fill makes a workload fill in the certificate authority of its webhooks, and the key of a Secret where it is named.
func fill(config client.Object, secret string) rule {
	return func(ctx context.Context, c client.Client) (bool, error) {
		webhooks := config.DeepCopyObject().(client.Object)
		if err := c.Get(ctx, client.ObjectKeyFromObject(config), webhooks); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		for _, of := range clients(webhooks) {
			of.CABundle = authority
		}
		err := c.Update(ctx, webhooks, client.FieldOwner("rules"))
		if namespace, name, ok := strings.Cut(secret, "/"); ok {
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			if getErr := c.Get(ctx, client.ObjectKeyFromObject(s), s); getErr != nil {
				return false, client.IgnoreNotFound(getErr)
			}
			s.Data = map[string][]byte{"tls.crt": authority}
			err = errors.Join(err, c.Update(ctx, s, client.FieldOwner("rules")))
		}
		return err == nil, err
	}
}

func clients(config client.Object) (out []*admissionv1.WebhookClientConfig) {
	switch config := config.(type) {
	case *admissionv1.ValidatingWebhookConfiguration:
		for i := range config.Webhooks {
			out = append(out, &config.Webhooks[i].ClientConfig)
		}
	case *admissionv1.MutatingWebhookConfiguration:
		for i := range config.Webhooks {
			out = append(out, &config.Webhooks[i].ClientConfig)
		}
	}
	return out
}

func validating(name string) *admissionv1.ValidatingWebhookConfiguration {
	return &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func mutating(name string) *admissionv1.MutatingWebhookConfiguration {
	return &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// closes makes a workload, once it runs, let its webhook fail closed.
func closes(name string) rule {
	return func(ctx context.Context, c client.Client) (bool, error) {
		config := validating(name)
		if err := c.Get(ctx, client.ObjectKeyFromObject(config), config); err != nil {
			return true, client.IgnoreNotFound(err)
		}
		fail := admissionv1.Fail
		if *config.Webhooks[0].FailurePolicy == fail {
			return true, nil
		}
		config.Webhooks[0].FailurePolicy, config.Webhooks[0].ClientConfig.CABundle = &fail, authority
		return true, c.Update(ctx, config, client.FieldOwner("rules"))
	}
}

// after lets a workload succeed once the webhooks of a configuration have their certificate authority.
func after(config client.Object) rule {
	return func(ctx context.Context, c client.Client) (bool, error) {
		live := config.DeepCopyObject().(client.Object)
		err := c.Get(ctx, client.ObjectKeyFromObject(config), live)
		return err == nil && !slices.ContainsFunc(clients(live), func(of *admissionv1.WebhookClientConfig) bool { return len(of.CABundle) == 0 }), client.IgnoreNotFound(err)
	}
}

var operators = []operator{
	{
		name: "secrets-operator", quick: true, gated: "deploy/secretstore-validate.validatingwebhookconfiguration.yaml",
		rules: map[string]rule{
			"secrets-operator-cert-controller": fill(validating("secretstore-validate"), "secrets-operator/secrets-operator-webhook"),
			"secrets-operator-webhook": func(ctx context.Context, c client.Client) (bool, error) {
				var s corev1.Secret
				err := c.Get(ctx, client.ObjectKey{Namespace: "secrets-operator", Name: "secrets-operator-webhook"}, &s)
				return len(s.Data["tls.crt"]) > 0, client.IgnoreNotFound(err)
			},
		},
	},
	{
		name: "mesh", quick: true, rules: map[string]rule{"meshd": closes("mesh-validator")},
		judge: func(t *testing.T, c client.Client) {
			harness.Eventually(t, harness.Patience, "the webhook fails closed", func(ctx context.Context) error {
				config := validating("mesh-validator")
				if err := c.Get(ctx, client.ObjectKeyFromObject(config), config); err != nil {
					return err
				}
				if *config.Webhooks[0].FailurePolicy != admissionv1.Fail {
					return errors.New("it fails open")
				}
				return nil
			})
		},
	},
	{
		name: "serving", gated: "deploy/config.webhook.serving.example.com.validatingwebhookconfiguration.yaml",
		rules:    map[string]rule{"webhook": fill(validating("config.webhook.serving.example.com"), "")},
		webhooks: []string{"kubernetes.io/metadata.name: serving", "kubernetes.io/metadata.name: none"},
	},
	{
		name: "certificates",
		rules: map[string]rule{
			"certificates-cainjector":      fill(mutating("certificates-webhook"), ""),
			"certificates-startupapicheck": after(mutating("certificates-webhook")),
		},
	},
	{name: "storage"},
	{
		name: "pipelines", gated: "deploy/config.webhook.pipelines.example.com.validatingwebhookconfiguration.yaml",
		rules:    map[string]rule{"pipelines-webhook": fill(validating("config.webhook.pipelines.example.com"), "pipelines/webhook-certs")},
		webhooks: []string{"objectSelector: {matchLabels: {app: pipelines}}", "objectSelector: {matchLabels: {app: none}}"},
	},
}

// Projects whose workloads become ready by what they find and write are kickstarted without an edit, installed, upgraded,
// rolled back and deleted. With what one waits for in a later phase, lint and explain name that.
func TestOperators(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	for _, o := range operators {
		if o.quick || harness.Deep() {
			t.Run(o.name, func(t *testing.T) {
				t.Parallel()
				o.live(t, env)
			})
		}
	}
}

func (o operator) live(t *testing.T, env *harness.Env) {
	input, err := os.ReadFile(filepath.Join("../../internal/cli/author/kickstart/testdata/projects", o.name+".yaml"))
	require.NoError(t, err)
	// No scheduler takes the pods, so that nothing but the rules makes them ready.
	text := strings.NewReplacer(append(o.webhooks, "      containers:", "      schedulerName: rules\n      containers:")...).Replace(string(input))
	dir := t.TempDir()
	folder, objects := filepath.Join(dir, o.name), filepath.Join(dir, "release.yaml")
	write := func(file, text string) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	build := func(tag string) string {
		image := env.Registry() + "/operators/" + o.name + ":" + tag
		ok(t, env, "build", folder, "--push", "-t", image)
		return image
	}
	stop := o.obey(t, env.Client)
	defer stop()
	judge := func() {
		if o.judge != nil {
			o.judge(t, env.Client)
		}
	}

	write(objects, text)
	ok(t, env, "kickstart", folder, "-f", objects, "--version", "1.0.0")
	ok(t, env, "lint", folder, "--disable", "keep-data")
	ok(t, env, "install", build("v1"), o.name, "--cluster", "--timeout", patience)
	judge()
	write(objects, strings.ReplaceAll(text, `:v1"`, `:v2"`))
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	ok(t, env, "kickstart", folder, "-f", objects, "--version", "1.1.0")
	ok(t, env, "install", build("v2"), o.name, "--cluster", "--timeout", patience)
	judge()
	ok(t, env, "rollout", "undo", "clusterpackage/"+o.name, "--yes")
	judge()
	ok(t, env, "delete", "clusterpackage/"+o.name, "--yes")
	if o.gated != "" && harness.Deep() {
		o.closed(t, env, folder, build, write)
	}
}

// closed has what a workload waits for in a later phase.
func (o operator) closed(t *testing.T, env *harness.Env, folder string, build func(string) string, write func(file, text string)) {
	for file, edit := range map[string][2]string{
		o.gated:         {"package-operator.run/phase: deploy", "package-operator.run/phase: late"},
		"manifest.yaml": {"    - name: deploy\n", "    - name: deploy\n    - name: late\n"},
	} {
		data, err := os.ReadFile(filepath.Join(folder, file))
		require.NoError(t, err)
		edited := strings.Replace(string(data), edit[0], edit[1], 1)
		if edited == string(data) {
			edited = strings.Replace(string(data), strings.ReplaceAll(edit[0], "    -", "  -"), strings.ReplaceAll(edit[1], "    -", "  -"), 1)
		}
		write(filepath.Join(folder, file), edited)
	}
	if got := run(t, env, "lint", folder, "--rule", "phase-never-complete"); !strings.Contains(got.out+got.err, `the phase "deploy" waits for it, and it may write, as its rights say,`) {
		t.Errorf("lint says %+v", got)
	}
	r := run(t, env, "install", build("closed"), o.name, "--cluster", "--adopt", "--timeout", "5s") // its Namespace was kept
	if r.code != 1 || !strings.Contains(r.err, "phase deploy waits for:") {
		t.Errorf("got %+v", r)
	}
	ok(t, env, "delete", "clusterpackage/"+o.name, "--yes")
}

// obey runs the programs of the pods until the function returned is called.
func (o operator) obey(t *testing.T, c client.Client) func() {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			var pods corev1.PodList
			if err := c.List(ctx, &pods, client.InNamespace(o.name)); err != nil && ctx.Err() == nil {
				t.Logf("list pods: %v", err)
			}
			for i := range pods.Items {
				if err := o.step(ctx, c, &pods.Items[i]); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
					t.Logf("%s: %v", pods.Items[i].Name, err)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// step does what one pod does.
func (o operator) step(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Spec.SchedulerName != "rules" {
		return nil
	}
	starts, err := o.starts(ctx, c, pod)
	if !starts || err != nil {
		return err
	}
	ready := true
	if do := o.rules[pod.Labels["app"]]; do != nil {
		if ready, err = do(ctx, c); err != nil {
			return err
		}
	}
	if !ready || pod.Status.Phase == corev1.PodRunning {
		return nil
	}
	now := metav1.Now()
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	if _, isJob := pod.Labels["job-name"]; isJob {
		pod.Status.Phase = corev1.PodSucceeded
	}
	for _, typ := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: typ, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	return c.Status().Update(ctx, pod)
}

// starts reports whether all is there that the pod mounts and reads.
func (o operator) starts(ctx context.Context, c client.Client, pod *corev1.Pod) (bool, error) {
	var needed []client.Object
	need := func(obj client.Object, name string) {
		obj.SetNamespace(pod.Namespace)
		obj.SetName(name)
		needed = append(needed, obj)
	}
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil {
			need(&corev1.Secret{}, v.Secret.SecretName)
		}
	}
	for _, container := range pod.Spec.Containers {
		for _, from := range container.EnvFrom {
			need(&corev1.ConfigMap{}, from.ConfigMapRef.Name)
		}
	}
	for _, obj := range needed {
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return false, client.IgnoreNotFound(err)
		}
	}
	return true, nil
}
