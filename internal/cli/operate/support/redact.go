package support

import (
	"encoding/base64"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/sensitive"
)

// Redactor removes secrets from texts.
type Redactor struct {
	values []*sensitive.Values
	// tooMany means that there are too many values to search for, so all texts of several words are
	// withheld.
	tooMany bool
}

// MaxValues is the maximum size of the searched values, in bytes. In memory they need 40 times as
// much.
const MaxValues = 8 * limits.SensitiveBytes

// NewRedactor returns a Redactor for values that no text may quote. It ignores values that are
// names of objects, because the archive shows these names.
func NewRedactor(values []string, names map[string]bool) *Redactor {
	chunks, total, size := [][]string{nil}, 0, 0
	for value := range forms(values) {
		if names[value] {
			continue
		}
		if total += len(value); total > MaxValues {
			return &Redactor{tooMany: true}
		}
		if size += len(value); size > limits.SensitiveBytes {
			chunks, size = append(chunks, nil), len(value)
		}
		last := len(chunks) - 1
		chunks[last] = append(chunks[last], value)
	}

	r := &Redactor{}
	for _, chunk := range chunks {
		found, err := sensitive.New(chunk)
		if err != nil {
			return &Redactor{tooMany: true}
		}
		r.values = append(r.values, found)
	}

	return r
}

// forms yields each value, its decoded form if it is base64, and its lines.
func forms(values []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, value := range values {
			all := []string{value}
			if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
				all = append(all, string(decoded))
			}

			for _, text := range all {
				if !yield(text) {
					return
				}
				if !strings.Contains(text, "\n") {
					continue
				}
				for line := range strings.Lines(text) {
					if !yield(strings.TrimSpace(line)) {
						return
					}
				}
			}
		}
	}
}

// Complete reports whether texts are searched for all values. If there are too many, every text of
// several words is withheld.
func (r *Redactor) Complete() bool { return !r.tooMany }

// withheldText replaces a text that cannot be searched.
const withheldText = "[withheld]"

var (
	// assignments can be quoted within a quoted text, as objects are in JSON logs.
	assignments = regexp.MustCompile(`(?i)((?:password|passwd|passphrase|pwd|secret|token|(?:api|access|secret|private)[-_]?key|credentials?)\\*["']?\s*[:=]\s*\\*["']?)[^\s"',;}]+`)
	// userinfo matches the user and password of any address, such as postgres://user:password@host.
	userinfo = regexp.MustCompile(`(\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/"'@:]*:[^\s/"']*@`)
	tokens   = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*\.?[A-Za-z0-9_-]*|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[opsur]_[A-Za-z0-9]{20,}\b|\bgithub_pat_[A-Za-z0-9_]{20,}\b|\bxox[abprs]-[A-Za-z0-9-]{10,}\b`)
	keys     = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`)
)

// Text returns a text of any number of lines, without the values, and without likely credentials.
func (r *Redactor) Text(text string) string {
	// A text of one word is a name or a reason of the engine, and no value is quoted in it.
	if strings.ContainsAny(text, " \n") {
		if r.tooMany {
			return withheldText
		}
		lines := strings.SplitAfter(text, "\n")
		for i := range lines {
			for _, values := range r.values {
				lines[i] = values.RedactWords(lines[i])
			}
		}
		text = strings.Join(lines, "")
	}

	text = keys.ReplaceAllString(outbound.Conceal(text), sensitive.Mark)
	text = userinfo.ReplaceAllString(text, "${1}…@")
	text = tokens.ReplaceAllString(text, sensitive.Mark)
	return assignments.ReplaceAllString(text, "${1}"+sensitive.Mark)
}

// selection has the fields of an object in an archive. A name leads to the fields below it, which also
// apply to each element of a list. Nil means the whole value.
type selection map[string]selection

// kept has all fields that show the state of an object of any kind, and no field with a value from
// a user. Objects of packages are only references.
var kept = parse(`
	apiVersion kind metadata.name metadata.namespace metadata.uid metadata.generation metadata.resourceVersion metadata.creationTimestamp
	metadata.deletionTimestamp metadata.finalizers metadata.ownerReferences metadata.labels metadata.annotations status

	spec.image spec.packageRef spec.downgradePolicy spec.serviceAccountName spec.targetRef spec.imagePullSecrets spec.imagePullPolicy
	spec.interval spec.configFrom spec.component spec.defaultNamespace spec.collisionProtection spec.ignoredFields spec.driftPolicy
	spec.deletionPolicy spec.dependencies spec.upgradePolicy spec.paused spec.progressDeadlineSeconds spec.revisionHistoryLimit
	spec.revisionActivationPolicy spec.onDeadline spec.archivalPolicy

	spec.phases.name spec.phases.class spec.phases.slices spec.phases.secretSlices spec.availabilityProbes spec.successDelaySeconds
	spec.phases.objects.object.apiVersion spec.phases.objects.object.kind spec.phases.objects.object.metadata.name
	spec.phases.objects.object.metadata.namespace spec.lifecycleState spec.previous spec.revision
	spec.objects.object.apiVersion spec.objects.object.kind spec.objects.object.metadata.name spec.objects.object.metadata.namespace

	spec.template.spec.phases.name spec.template.spec.phases.class spec.template.spec.phases.slices spec.template.spec.phases.secretSlices
	spec.template.spec.phases.objects.object.apiVersion spec.template.spec.phases.objects.object.kind
	spec.template.spec.phases.objects.object.metadata.name spec.template.spec.phases.objects.object.metadata.namespace
	spec.template.spec.availabilityProbes spec.template.spec.successDelaySeconds spec.template.spec.serviceAccountName
	spec.template.spec.targetRef spec.template.spec.image

	spec.sources spec.source.image spec.source.http spec.source.git spec.source.inline.filesFrom spec.priority spec.namespaceSelector
	spec.hostedClusterSelector spec.partition spec.matchImages spec.rewrite spec.pullSecretRef spec.verification.mode
	spec.verification.authorities.name

	spec.replicas spec.strategy spec.nodeName spec.containers.name spec.containers.image spec.containers.resources
	spec.template.spec.containers.name spec.template.spec.containers.image spec.template.spec.containers.args
	spec.template.spec.containers.env.name spec.template.spec.containers.resources
	spec.holderIdentity spec.leaseDurationSeconds spec.acquireTime spec.renewTime spec.leaseTransitions

	type reason action message note count involvedObject regarding reportingComponent source firstTimestamp lastTimestamp eventTime series
`)

// parse reads paths such as "status.conditions". A path includes everything below it.
func parse(paths string) selection {
	root := selection{}
	for path := range strings.FieldsSeq(paths) {
		at := root
		names := strings.Split(path, ".")
		for _, name := range names[:len(names)-1] {
			if at[name] == nil {
				at[name] = selection{}
			}
			at = at[name]
		}
		at[names[len(names)-1]] = nil
	}

	return root
}

// ownNames are prefixes of labels and annotations in an archive.
var ownNames = []string{"package-operator.run/", "packages.package-operator.run/", "slices.package-operator.run/", "required-by.package-operator.run/", "app.kubernetes.io/"}

// Keep returns the parts of an object that an archive has. It only keeps the engine's own labels
// and annotations.
func Keep(object map[string]any) map[string]any {
	out, _ := shown(object, kept, func(text string) string { return text }).(map[string]any)
	if meta, ok := out["metadata"].(map[string]any); ok {
		for _, field := range []string{"labels", "annotations"} {
			if all, ok := meta[field].(map[string]any); ok {
				maps.DeleteFunc(all, func(key string, _ any) bool {
					return key == corev1alpha1.PackageConfigAnnotation || !slices.ContainsFunc(ownNames, func(own string) bool { return strings.HasPrefix(key, own) })
				})
			}
		}
	}

	return out
}

// Show returns a kept object, with its texts passed through show.
func Show(object map[string]any, show func(string) string) map[string]any {
	out, _ := shown(object, nil, show).(map[string]any)
	return out
}

// shown returns the parts of a value that some fields select. It passes texts through show.
func shown(value any, f selection, show func(string) string) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, below := range value {
			if deeper, is := f[name]; is || f == nil {
				out[name] = shown(below, deeper, show)
			}
		}

		return out
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = shown(value[i], f, show)
		}
		return out
	case string:
		if f != nil {
			return "" // a value where fields are expected
		}
		return show(value)
	}

	return value
}

// sensitiveDigits is the minimum length of a number that might be a password.
const sensitiveDigits = 8 // of a number that might be a password; ports, sizes and times are shorter

// Sensitive returns the values of an object that no text of the archive may quote: the values of
// its config, and the data of Secrets among its objects.
func Sensitive(object map[string]any) (found []string) {
	number := func(text string) {
		if len(text) >= sensitiveDigits {
			found = append(found, text)
		}
	}
	leaves := func(value any) {
		fields.Walk(value, func(_ map[string]any, _ string, value any) {
			switch value := value.(type) {
			case string:
				found = append(found, value)
			case int64:
				number(strconv.FormatInt(value, 10))
			case float64:
				number(strconv.FormatFloat(value, 'f', -1, 64))
			}
		})
	}

	// Revisions have the config of their time, which might no longer be the Package's.
	var config any
	text := fields.Text(object, "metadata", "annotations", corev1alpha1.PackageConfigAnnotation)
	if utiljson.Unmarshal([]byte(text), &config) == nil {
		leaves(config)
	}

	// A slice has its objects next to its metadata.
	for _, part := range []any{object["spec"], object["objects"]} {
		fields.Walk(part, func(_ map[string]any, _ string, value any) {
			below := fields.Map(value)
			if below["kind"] == "Secret" {
				leaves(below["data"])
				leaves(below["stringData"])
			}
			leaves(below["config"])
		})
	}
	return found
}
