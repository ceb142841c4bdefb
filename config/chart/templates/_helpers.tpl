{{/* The image of the manager. The digest of the release is no value: with --reuse-values, that of the chart before would go on. */}}
{{- define "lockstep.image" -}}
{{- $image := .Values.manager.image -}}
{{- $digest := $image.digest -}}
{{- if not (or $digest $image.tag) }}{{ $digest = index .Chart.Annotations "lockstep.run/image-digest" }}{{ end -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}{{ with $digest }}@{{ . }}{{ end }}
{{- end }}

{{/* Writes what values say into an object of the manifests: .object, with .root for the chart. */}}
{{- define "lockstep.configure" -}}
{{- $manager := .root.Values.manager -}}
{{- $object := .object -}}
{{- if eq $object.kind "ServiceAccount" -}}
  {{- with $manager.serviceAccountAnnotations }}{{ $_ := set $object.metadata "annotations" . }}{{ end -}}
  {{- $secrets := list -}}
  {{- range $manager.imagePullSecrets }}{{ $secrets = append $secrets (dict "name" .) }}{{ end -}}
  {{- with $secrets }}{{ $_ := set $object "imagePullSecrets" . }}{{ end -}}
{{- else if eq $object.kind "Deployment" -}}
  {{- $pod := $object.spec.template -}}
  {{- $container := first $pod.spec.containers -}}
  {{- $_ := set $object.spec "replicas" $manager.replicas -}}
  {{- $_ := set $container "image" (include "lockstep.image" .root) -}}
  {{- with $manager.image.pullPolicy }}{{ $_ := set $container "imagePullPolicy" . }}{{ end -}}
  {{- $args := $container.args -}}
  {{- if .root.Values.tenancy.enabled }}{{ $args = concat $args (list "--require-service-account" "--shared-pull-secrets=cluster") }}{{ end -}}
  {{- range $flag, $value := $manager.flags -}}
    {{- range (kindIs "slice" $value | ternary $value (list $value)) }}{{ $args = append $args (printf "--%s=%s" $flag (kindIs "string" . | ternary . (toJson .))) }}{{ end -}}
  {{- end -}}
  {{- $_ := set $container "args" $args -}}
  {{- $own := $manager.env -}}
  {{- range $name, $value := dict "HTTP_PROXY" $manager.proxy.http "HTTPS_PROXY" $manager.proxy.https "NO_PROXY" $manager.proxy.noProxy -}}
    {{- if $value }}{{ $own = append $own (dict "name" $name "value" $value) }}{{ end -}}
  {{- end -}}
  {{- $names := list -}}
  {{- range $own }}{{ $names = append $names .name }}{{ end -}}
  {{- $env := list -}}
  {{- range $container.env }}{{ if not (has .name $names) }}{{ $env = append $env . }}{{ end }}{{ end -}}
  {{- $_ := set $container "env" (concat $env $own) -}}
  {{- $_ := set $container "resources" (mergeOverwrite $container.resources (deepCopy $manager.resources)) -}}
  {{- $_ := set $container "volumeMounts" (concat $container.volumeMounts $manager.volumeMounts) -}}
  {{- $_ := set $pod.spec "volumes" (concat $pod.spec.volumes $manager.volumes) -}}
  {{- range $field := list "nodeSelector" "tolerations" "affinity" -}}
    {{- with index $manager $field }}{{ $_ := set $pod.spec $field . }}{{ end -}}
  {{- end -}}
  {{- $_ := set $pod.metadata "annotations" (merge $pod.metadata.annotations $manager.podAnnotations) -}}
  {{- $_ := set $pod.metadata "labels" (merge $pod.metadata.labels $manager.podLabels) -}}
{{- end -}}
{{- end }}
