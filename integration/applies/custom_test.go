package applies_test

// group is the group of the custom kinds.
const group = "applies.example.com"

func customKinds() []*kind {
	return []*kind{definition(), strict(), free()}
}

func definition() *kind {
	const version = "spec/versions/[name=v1]"
	return &kind{
		name: "CustomResourceDefinition",
		base: `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.NAME.example.com}
spec:
  group: NAME.example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}}}]`,
		dimensions: []dimension{
			dim("conversion", "", "spec/conversion = {strategy: None}", "spec/conversion = {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: s, namespace: default}}}}",
				"spec/conversion = {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: \"https://a.example.com\"}}}"),
			dim("schema", "", version+"/schema/openAPIV3Schema/properties/spec/properties/b = {type: integer}", version+"/schema/openAPIV3Schema/properties/spec = {type: object, x-kubernetes-preserve-unknown-fields: true}",
				version+"/schema/openAPIV3Schema/properties/spec/properties/a = {type: string, default: x}"),
			dim("versions", "", "spec/versions/[name=v2] = {served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}",
				version+"/deprecated = true"),
			dim("columns", "", version+"/additionalPrinterColumns = [{name: A, type: string, jsonPath: .spec.a}]", version+"/additionalPrinterColumns = [{name: B, type: string, jsonPath: .spec.a}, {name: Age, type: date, jsonPath: .metadata.creationTimestamp}]"),
			dim("subresources", "", version+"/subresources = {status: {}}", version+"/subresources = {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}", version+"/subresources = {}"),
			dim("names", "", "spec/names/shortNames = [th]", "spec/names/shortNames = [tg]\nspec/names/categories = [all-of-them]"),
			hand("injected authority", "spec/conversion/webhook/clientConfig/caBundle = LS0tLS1CRUdJTg=="),
		},
	}
}

func strict() *kind {
	return &kind{
		name: "Strict",
		base: "apiVersion: " + group + "/v1\nkind: Strict\nmetadata: {name: NAME}",
		dimensions: []dimension{
			dim("spec", "", "spec = {}"),
			dim("map", "", "spec/map = {a: b}", "spec/map = {}", "spec/map = {a: c, d: e}"),
			dim("list map", "", "spec/listmap = [{k: a}]", "spec/listmap = []", "spec/listmap = [{k: a, v: x}, {k: b, w: y}]", "spec/listmap = [{k: b}, {k: a}]"),
			dim("set", "", "spec/set = [a]", "spec/set = [b, a]", "spec/set = []"),
			dim("atomic", "", "spec/atomic = [{k: a}]", "spec/atomic = [{k: a, v: b}, {k: a}]", "spec/atomic = []"),
			dim("atomic map", "", "spec/amap = {a: b}", "spec/amap = {c: d}", "spec/amap = {}"),
			dim("plain", "", "spec/plain = [a, b]", "spec/plain = [b]", "spec/plain = []"),
			dim("default", "", "spec/def = e", "spec/def = d"),
			dim("default map", "", "spec/defmap = {}", "spec/defmap = {y: 2}", "spec/defmap = {x: 3}"),
			dim("nullable", "", "spec/nul = null", "spec/nul = a"),
			dim("numbers", "", "spec/ios = 1", "spec/ios = a", "spec/num = 1.5", "spec/int = 7"),
			dim("one", "", "spec/one = {a: x}", "spec/one = {b: x}"),
			dim("mode", "", "spec/mode = B\nspec/modeB = x", "spec/mode = B", "spec/mode = A"),
			dim("short list", "", "spec/max = [{k: a}, {k: b}]", "spec/max = [{k: c}, {k: d}]"),
			dim("embedded", "", "spec/emb = {apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}", "spec/emb = {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"),
			dim("immutable", "", "spec/imm = a", "spec/imm = b"),
			dim("replicas", "", "spec/replicas = 2", "spec/replicas = 3"),
			hand("foreign", "spec/map/theirs = x", "spec/listmap/[k=theirs] = {v: x}", "spec/one/b = theirs"),
		},
	}
}

func free() *kind {
	return &kind{
		name: "Free",
		base: "apiVersion: " + group + "/v1\nkind: Free\nmetadata: {name: NAME}",
		dimensions: []dimension{
			dim("spec", "", "spec = {}", "spec = null"),
			dim("policy", "", "spec/syncPolicy = {automated: {prune: true}}", "spec/syncPolicy = {automated: {}}", "spec/syncPolicy = {}", "spec/syncPolicy = {automated: {prune: true, selfHeal: true}, retry: {limit: 1}}"),
			dim("issuer", "", "spec/selfSigned = {}", "spec/ca = {secretName: s}", "spec/acme = {server: s, solvers: [{http01: {ingress: {}}}]}"),
			dim("list", "", "spec/list = [{k: a}]", "spec/list = []", "spec/list = [{k: a, v: {}}, {k: b}]"),
			dim("deep", "", "spec/a/b/c = {}", "spec/a/b = {}", "spec/a/b/c/d = 1", "spec/a/b/c = []"),
			dim("values", "", "spec/values = {a: 1, b: [1, 2], c: null}", "spec/values = {a: \"1\", b: []}", "spec/values = {}"),
			dim("data", "", "data = {}", "data/a = b"),
			hand("foreign", "spec/theirs = {}", "spec/selfSigned/crl = [x]", "spec/syncPolicy/automated/prune = false", "spec/values/a = 9"),
		},
	}
}

// recreatedKinds returns kinds with the annotation that allows to recreate objects.
func recreatedKinds() []*kind {
	const note = ", annotations: {package-operator.run/on-immutable: Recreate}}"
	return []*kind{{
		name: "Service/recreated",
		base: "apiVersion: v1\nkind: Service\nmetadata: {name: NAME" + note + "\nspec: {selector: {app: NAME}, ports: [{port: 80}]}",
		dimensions: []dimension{
			dim("type", "", "spec/clusterIP = None", "spec/type = ExternalName\nspec/externalName = example.com", "spec/type = NodePort"),
		},
	}, {
		name: "Job/recreated",
		base: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: NAME" + note + "\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}}",
		dimensions: []dimension{
			dim("image", "", "spec/template/spec/containers/[name=main]/image = b"),
			dim("completions", "", "spec/completions = 2", "spec/completionMode = Indexed\nspec/completions = 3"),
		},
	}, {
		name: "Strict/recreated",
		base: "apiVersion: " + group + "/v1\nkind: Strict\nmetadata: {name: NAME" + note + "\nspec: {imm: a}",
		dimensions: []dimension{
			dim("immutable", "", "spec/imm = b"),
			dim("map", "", "spec/map = {a: b}"),
		},
	}}
}
