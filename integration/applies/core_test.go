package applies_test

func coreKinds() []*kind {
	return []*kind{
		{
			name: "ConfigMap",
			base: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}",
			dimensions: []dimension{
				dim("key", "", "data/k = a", "binaryData/k = Yg==", "data/k = other"),
				dim("other keys", "", "data/a = b", "data/a = c\ndata/d = e", "data = {}"),
				hand("foreign key", "data/theirs = x", "binaryData/theirs = eA=="),
			},
		},
		{
			name: "Secret",
			base: "apiVersion: v1\nkind: Secret\nmetadata: {name: NAME}",
			dimensions: []dimension{
				dim("key", "", "data/k = Yg==", "stringData/k = c", "data/k = Yg==\nstringData/k = d"),
				dim("other keys", "", "stringData/j = b", "data/j = Yg==", "stringData/j = c\nstringData/i = d"),
				hand("foreign key", "data/theirs = eA=="),
			},
		},
		{
			name: "ServiceAccount",
			base: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: NAME}",
			dimensions: []dimension{
				dim("automount", "", "automountServiceAccountToken = false", "automountServiceAccountToken = true"),
				dim("pull secrets", "", "imagePullSecrets = [{name: a}]", "imagePullSecrets = [{name: b}]", "imagePullSecrets = []"),
				dim("secrets", "", "secrets = [{name: a}]", "secrets = [{name: b}, {name: a}]"),
				hand("foreign pull secret", "imagePullSecrets/[name=theirs] = {}"),
			},
		},
		{
			name: "PersistentVolumeClaim",
			base: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: NAME}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
			dimensions: []dimension{
				dim("class", "", "spec/storageClassName = a", "spec/storageClassName = b"),
				dim("size", "", "spec/resources/requests/storage = 2Gi"),
				dim("source", "", "spec/dataSource = {kind: PersistentVolumeClaim, name: other}", "spec/volumeMode = Block"),
			},
		},
		{
			name: "PersistentVolume",
			base: "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: NAME}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: none, hostPath: {path: /data}}",
			dimensions: []dimension{
				dim("reclaim", "", "spec/persistentVolumeReclaimPolicy = Delete", "spec/persistentVolumeReclaimPolicy = Retain"),
				dim("modes", "", "spec/accessModes = [ReadWriteMany, ReadOnlyMany]"),
				dim("capacity", "", "spec/capacity/storage = 2Gi"),
				dim("options", "", "spec/mountOptions = [a]", "spec/mountOptions = [b, a]"),
			},
		},
		{
			name: "LimitRange",
			base: "apiVersion: v1\nkind: LimitRange\nmetadata: {name: NAME}\nspec: {limits: [{type: example.com/thing, min: {cpu: 1}}]}",
			dimensions: []dimension{
				dim("limits", "", "spec/limits = [{type: example.com/thing, max: {cpu: 9}}]", "spec/limits = [{type: example.com/thing, min: {cpu: 1}, max: {cpu: 8}}, {type: example.com/other, max: {cpu: 1k}}]"),
			},
		},
		{
			name: "ResourceQuota",
			base: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: NAME}\nspec: {hard: {count/leases.coordination.k8s.io: 100000}}",
			dimensions: []dimension{
				dim("hard", "", "spec/hard = {configmaps: 100000}", "spec/hard/pods = 100000", "spec/hard = {}"),
				dim("scopes", "", "spec/scopes = [BestEffort]\nspec/hard = {pods: 100000}"),
			},
		},
		{
			name: "Endpoints",
			base: "apiVersion: v1\nkind: Endpoints\nmetadata: {name: NAME}",
			dimensions: []dimension{
				dim("subsets", "", "subsets = [{addresses: [{ip: 192.0.2.1}], ports: [{name: a, port: 80}]}]", "subsets = [{notReadyAddresses: [{ip: 192.0.2.2}], ports: [{name: a, port: 81}]}]"),
			},
		},
		{
			name: "Namespace",
			base: "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAME}",
			dimensions: []dimension{
				dim("security", "", "metadata/labels/pod-security.kubernetes.io~1enforce = baseline", "metadata/labels/pod-security.kubernetes.io~1enforce = privileged"),
			},
		},
		{
			name: "Lease",
			base: "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: NAME}",
			dimensions: []dimension{
				dim("holder", "", "spec/holderIdentity = a", "spec/holderIdentity = b\nspec/leaseDurationSeconds = 15", "spec = {}"),
				hand("foreign holder", "spec/leaseTransitions = 3", "spec/renewTime = \"2026-01-01T00:00:00.000000Z\""),
			},
		},
	}
}
