package lint

import "slices"

// Rule is one kind of mistake.
type Rule struct {
	// Name is stable.
	Name  string `json:"name"`
	Level Level  `json:"level"`

	check func(*oneCase, reporter)

	// Summary is a sentence about the mistake and why it matters.
	Summary string `json:"summary"`

	// Remedy is a sentence about how to correct it, for the reference.
	Remedy string `json:"-"`
}

// Rules returns all rules, sorted by level and name.
func Rules() []Rule { return slices.Concat(errorRules(), warningRules(), infoRules()) }

func errorRules() []Rule {
	return []Rule{
		{"crd-and-resource-in-one-phase", Error, resourceBeforeDefinition,
			"A resource is rolled out before, or together with, the CustomResourceDefinition of its kind, which the API server does not know until that is established.",
			"Put the resource into a later phase, and probe the definition for `Established`."},
		{"definition-version-removed", Error, versionRemoved,
			"A version of a CustomResourceDefinition is gone or no longer served: its clients break, and the API server refuses it while objects are stored in that version.",
			"Keep the version served until every client and every stored object is of a later one."},
		{"immutable-field", Error, immutableField,
			"A field has changed since the older package that the API server does not let change: the upgrade is stuck.",
			"Give the object another name, or, where it is not kept, annotate it with `package-operator.run/on-immutable: Recreate`."},
		{"latest-image", Error, imageRule(true),
			"An image has the tag latest or none: what runs depends on the day, and a rollback brings the same tag.",
			"`spec.images` of the manifest, `kubectl package update`, and `{{ .images.NAME }}` in a template."},
		{"leftover-in-use", Error, leftoverInUse,
			"A Namespace or CustomResourceDefinition of the older package is missing, although objects are in it: an upgrade leaves it behind, controlled by nothing.",
			"Bring it as well, or move the objects before a version leaves it out."},
		{"namespace-after-use", Error, namespaceAfterUse,
			"An object is rolled out before, or together with, the Namespace that it is in.",
			"Put the Namespace into an earlier phase."},
		{"not-rendered", Error, once(notRendered),
			"Templates could not be rendered with the default configuration, and there is no test case: the rules checked only the other files.",
			"Add a test case with a configuration under `test.template`."},
		{"probe-unknown-field", Error, probeUnknownField,
			"A probe reads a field that objects of its kind do not have: it never succeeds.",
			"Name a field of the status."},
		{"secret-in-image", Error, secretInImage,
			"A file of the package has a Secret with its values: whoever may pull the image can read them.",
			"Let the value come from a Secret of the cluster, by `spec.configFrom` of the Package."},
		{"template-in-plain-file", Error, once(templateInPlainFile),
			"A file without the ending `.gotmpl` has a template expression, which is installed literally.",
			"Name the file `….yaml.gotmpl`."},
		{"webhook-before-backend", Error, webhookBeforeBackend,
			"A webhook that fails closed is rolled out before, or together with, the workload that answers it: until that is ready, the API server refuses what the webhook matches.",
			"Put the webhook into a later phase than its backend, and probe that."},
		{"webhook-own-api-group", Error, webhookOwnAPIGroup,
			"A webhook that fails closed matches the engine's own API group: while its backend is down, nothing can be rolled out or removed, this package included.",
			"Name the API groups that it is for, exclude `package-operator.run` by `matchConditions`, or set `failurePolicy: Ignore`."},
	}
}

func warningRules() []Rule {
	return []Rule{
		{"all-powers", Warning, allPowers,
			"A role allows everything on everything, or cluster-admin is bound.",
			"Name the API groups, resources and verbs that are needed."},
		{"finalizer", Warning, finalizer,
			"An object has a finalizer from its first moment: its deletion, and with it the package's, waits for a controller that removes it.",
			"Let the controller set it."},
		{"foreign-namespace", Warning, needsAll(foreignNamespace),
			"A ClusterPackage has an object in a namespace that it does not bring: the installation fails where the namespace does not exist.",
			"Bring the Namespace if it is the package's own; otherwise say in the README that it has to exist."},
		{"keep-data", Warning, keepData,
			"A CustomResourceDefinition or a PersistentVolumeClaim is deleted with the package, and with it all resources of its kind, or the data.",
			"Annotate with `package-operator.run/deletion-policy: Keep`, or disable the rule where the deletion is meant."},
		{"missing-probe", Warning, missingProbe,
			"No probe judges an object of a kind that says in its status whether it works: its phase counts as complete as soon as the object exists.",
			"Probe the condition or the fields that the finding names."},
		{"number-as-float", Warning, numberAsFloat,
			"A text has a number such as 1e+06, which is how templates print large ones, or a number is above 2^53 and loses digits in readers of JSON.",
			"Print it by `int64` or `printf \"%.0f\"`, or write it as text."},
		{"no-tests", Warning, once(noTests),
			"The manifest has no test cases: nothing notices what a change of a template does.",
			"Add a case, and run `kubectl package test --update`."},
		{"no-version", Warning, once(noVersion),
			"The manifest states no version: unknown fields are dropped in clusters and not refused, and installations cannot be told apart.",
			"State a semantic version."},
		{"phase-never-complete", Warning, phaseNeverComplete,
			"A phase waits for an object whose probe may need what a later phase brings: neither may ever come.",
			"One phase for both. That a workload waits for what its ServiceAccount may write is assumed; disable the rule where it does not."},
		{"probe-misses-failed-rollout", Warning, once(probeMissesFailedRollout),
			"The probes of a workload are true while pods of a new template cannot start: a broken upgrade counts as available, and later phases go on.",
			"The recipe for the kind."},
		{"probe-without-objects", Warning, once(needsAll(probeWithoutObjects)),
			"A probe selects no object of the package in any case: a mistyped group, kind or label.",
			"Correct the selector, or add a test case in which it selects something."},
		{"replicas-and-autoscaler", Warning, replicasAndAutoscaler,
			"A workload states its replicas, and a HorizontalPodAutoscaler of the package changes them: the package sets them back.",
			"Leave `spec.replicas` out, or name it under `spec.ignoredFields`."},
		{"service-without-backend", Warning, needsAll(serviceWithoutBackend),
			"A Service selects no pods of the package, in the namespace that it is in.",
			"Use the labels of the pods that answer."},
		{"unknown-rule", Warning, once(unknownRule),
			"The manifest leaves out a rule that does not exist: a mistyped name, and what was meant is still reported.",
			"The name that is suggested."},
		{"unpinned-image", Warning, imageRule(false),
			"An image is named by a tag and not by its digest: what runs is not what was tested.",
			"`spec.images` of the manifest, `kubectl package update`, and `{{ .images.NAME }}` in a template."},
	}
}

func infoRules() []Rule {
	return []Rule{
		{"custom-resource-probe", Info, once(customResourceProbe),
			"A phase waits for the status of a custom resource of the package: a controller may set it in some configurations alone, and elsewhere the package never becomes available.",
			"Remove the probe where that can be; disable the rule where the status is always set."},
		{"no-display", Info, once(noDisplay),
			"The manifest states a version and lacks the fields that a catalogue shows: a name, a short description, maintainers.",
			"Fill in `spec.display`."},
		{"ready-at-once", Info, readyAtOnce,
			"No container of a workload's pods has a readiness or startup probe: they count as ready as soon as they run, and later phases go on although they crash a moment later.",
			"A `readinessProbe`, or `minReadySeconds` as long as a start that fails takes."},
		{"unbounded-dependency", Info, once(unboundedDependency),
			"A dependency on a package names no versions: a later major version is installed for it, too.",
			"Write the versions that the package works with."},
		{"undeclared-api", Info, needsAll(undeclaredAPI),
			"An object is of a kind that neither Kubernetes nor the package brings, and no dependency names it: where it is not served, the rollout is stuck.",
			"Name the API, or the package that brings it, in `spec.dependencies`."},
		{"undocumented-config", Info, once(undocumentedConfig),
			"A configuration key has no description, which `kubectl package inspect` would show.",
			"Say what the key does, and in what unit."},
		{"unused-image", Info, once(needsAll(unusedImage)),
			"An image of the manifest is used by no template.",
			"Remove the image, or use it."},
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
