package lint

import "slices"

// Rule is one kind of mistake.
type Rule struct {
	// Name is stable.
	Name  string
	Level Level

	check func(*oneCase, reporter)

	// Summary is a sentence about the mistake and why it matters.
	Summary string

	// Remedy is a sentence about how to correct it.
	Remedy string
}

// Rules returns all rules, sorted by level and name.
func Rules() []Rule { return slices.Concat(errorRules(), warningRules(), infoRules()) }

// errorRules are the rules for failures and harm in a cluster. Their texts are in the reference, so
// a change needs hack/reference.
func errorRules() []Rule {
	return []Rule{
		{"crd-and-resource-in-one-phase", Error, resourceBeforeDefinition,
			"A resource is rolled out before, or together with, the CustomResourceDefinition of its kind: the API server does not know the kind until the definition is established.",
			"Put the resource into a later phase, and probe the definition for `Established`."},
		{"definition-version-removed", Error, versionRemoved,
			"A version of a CustomResourceDefinition was removed or is no longer served: its clients break, and the API server refuses the definition while objects are stored in that version.",
			"Keep the version served until every client and every stored object uses a later one."},
		{"immutable-field", Error, immutableField,
			"An immutable field has changed since the older package: the upgrade is stuck.",
			"Give the object another name, or, if it is not kept, annotate it with `package-operator.run/on-immutable: Recreate`."},
		{"latest-image", Error, imageRule(true),
			"An image has the tag latest or no tag: the image depends on the time of the pull, and a rollback uses the same tag.",
			"List it under `spec.images` of the manifest, run `kubectl package update`, and use `{{ .images.NAME }}` in a template."},
		{"leftover-in-use", Error, leftoverInUse,
			"A Namespace or CustomResourceDefinition of the older package is missing, although it still has objects: an upgrade leaves it behind without a controller.",
			"Keep it in the package, or move the objects before a version drops it."},
		{"namespace-after-use", Error, namespaceAfterUse,
			"An object is rolled out before, or together with, its Namespace.",
			"Put the Namespace into an earlier phase."},
		{"not-rendered", Error, once(notRendered),
			"Templates could not be rendered with the default configuration, and the manifest has no test cases: the rules checked only the other files.",
			"Add a test case with a configuration under `test.template`."},
		{"probe-unknown-field", Error, probeUnknownField,
			"A probe reads a field that objects of its kind do not have: it never succeeds.",
			"Name a field of the status."},
		{"secret-in-image", Error, secretInImage,
			"A file of the package has a Secret with values: everybody who can pull the image can read them.",
			"Read the value from a Secret of the cluster, with `spec.configFrom` of the Package."},
		{"template-in-plain-file", Error, once(templateInPlainFile),
			"A file without the ending `.gotmpl` has a template expression, which is installed literally.",
			"Name the file `….yaml.gotmpl`."},
		{"webhook-before-backend", Error, webhookBeforeBackend,
			"A webhook that fails closed is rolled out before, or together with, the workload that serves it: until the workload is ready, the API server refuses all objects that the webhook matches.",
			"Put the webhook into a later phase than its backend, and probe the backend."},
		{"webhook-own-api-group", Error, webhookOwnAPIGroup,
			"A webhook that fails closed matches the engine's own API group: while its backend is down, no package can be rolled out or removed, including this one.",
			"Name its API groups, exclude `package-operator.run` by `matchConditions`, or set `failurePolicy: Ignore`."},
	}
}

// warningRules are the rules for failures later or under load.
func warningRules() []Rule {
	return []Rule{
		{"finalizer", Warning, finalizer,
			"An object is created with a finalizer: its deletion, and the package's, waits for a controller that removes the finalizer.",
			"Let the controller set it."},
		{"foreign-namespace", Warning, needsAll(foreignNamespace),
			"A ClusterPackage has an object in a namespace that it does not contain: the installation fails if the namespace does not exist.",
			"Add the Namespace if it belongs to the package. Otherwise state in the README that it has to exist."},
		{"keep-data", Warning, keepData,
			"A CustomResourceDefinition or a PersistentVolumeClaim is deleted with the package, along with all resources of its kind, or its data.",
			"Annotate with `package-operator.run/deletion-policy: Keep`, or disable the rule if the deletion is intended."},
		{"missing-probe", Warning, missingProbe,
			"No probe checks an object whose status shows whether it works: its phase counts as complete as soon as the object exists.",
			"Probe the condition or the fields that the finding names."},
		{"number-as-float", Warning, numberAsFloat,
			"A text has a number such as 1e+06, which is how templates print large ones, or a number is above 2^53, so some readers of JSON lose digits.",
			"Print it with `int64` or `printf \"%.0f\"`, or write it as text."},
		{"no-tests", Warning, once(noTests),
			"The manifest has no test cases, which would show the effect of a changed template.",
			"Add a case, and run `kubectl package test --update`."},
		{"no-version", Warning, once(noVersion),
			"The manifest has no version: clusters drop unknown fields instead of refusing them, and installations cannot be told apart.",
			"Set a semantic version."},
		{"phase-never-complete", Warning, phaseNeverComplete,
			"A phase waits for an object whose probe might need an object of a later phase: the rollout might be stuck.",
			"Put both into one phase. The rule assumes that a workload waits for the objects that its ServiceAccount can write; disable it if the workload does not."},
		{"probe-misses-failed-rollout", Warning, once(probeMissesFailedRollout),
			"The probes of a workload are true while pods of a new template cannot start: a broken upgrade counts as available, and later phases continue.",
			"Use the recipe for the kind."},
		{"probe-without-objects", Warning, once(needsAll(probeWithoutObjects)),
			"A probe selects no object of the package in any case: a mistyped group, kind or label.",
			"Correct the selector, or add a test case with an object that it selects."},
		{"replicas-and-autoscaler", Warning, replicasAndAutoscaler,
			"A workload states its replicas, and a HorizontalPodAutoscaler of the package changes them: the engine resets them.",
			"Leave `spec.replicas` out, or name it under `spec.ignoredFields`."},
		{"unknown-rule", Warning, once(unknownRule),
			"The manifest disables a rule that does not exist: the intended rule still applies.",
			"Use the suggested name."},
		{"unpinned-image", Warning, imageRule(false),
			"An image is named by a tag instead of a digest: the image that runs might not be the tested one.",
			"List it under `spec.images` of the manifest, run `kubectl package update`, and use `{{ .images.NAME }}` in a template."},
	}
}

// infoRules are the rules for possible improvements.
func infoRules() []Rule {
	return []Rule{
		{"custom-resource-probe", Info, once(customResourceProbe),
			"A phase waits for the status of a custom resource of the package: if the controller only sets it in some configurations, the package never becomes available in the others.",
			"Remove the probe if that can happen, or disable the rule if the status is always set."},
		{"ready-at-once", Info, readyAtOnce,
			"No container of a workload's pods has a readiness or startup probe: they count as ready as soon as they run, and later phases continue even if the pods crash a moment later.",
			"Add a `readinessProbe`, or set `minReadySeconds` to the duration of a failing start."},
	}
}

// ruleNames returns the names of all rules.
func ruleNames() []string {
	var all []string
	for _, rule := range Rules() {
		all = append(all, rule.Name)
	}
	return all
}

// needsAll skips a rule that needs all objects of the package if templates were not rendered.
func needsAll(check func(*oneCase, reporter)) func(*oneCase, reporter) {
	return func(c *oneCase, r reporter) {
		if c.Unrendered == "" {
			check(c, r)
		}
	}
}

// once runs a rule only for the first case of a component.
func once(check func(*oneCase, reporter)) func(*oneCase, reporter) {
	return func(c *oneCase, r reporter) {
		if c.siblings[0] == c {
			check(c, r)
		}
	}
}
