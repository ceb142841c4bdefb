{{- /* A type: its fields as a list, which has no empty cells. The twin of a kind has no fields of its own. */ -}}
{{- define "type" -}}
{{- if markdownShouldRenderType . }}
## {{ .Name }}

{{ .Doc }}
{{- $twin := and .GVK (hasPrefix "Cluster" .Name) }}
{{- if $twin }} It has the same fields as [{{ trimPrefix "Cluster" .Name }}](#{{ trimPrefix "Cluster" .Name | lower }}).
{{- end }}
{{- with .SortedReferences }}

Used by{{ range $i, $type := . }}{{ if $i }},{{ end }} {{ markdownRenderTypeLink $type }}{{ end }}.
{{- end }}
{{ $kind := .GVK }}
{{- if and .Members (not $twin) }}
{{ range .Members }}{{ if not (and $kind (eq .Name "metadata")) }}- `{{ .Name }}` _{{ markdownRenderType .Type | replace "object (keys:string, values:string)" "map of strings" }}_{{ if not $kind }}{{ template "type_members" . }}{{ end }}
{{ end }}{{ end }}{{ end }}
{{- if .EnumValues }}
{{ range .EnumValues }}- `{{ .Name }}`{{ with .Doc }}: {{ regexReplaceAll "^[A-Z][A-Za-z]+ (is |means that |means )?" (markdownRenderFieldDoc . | replace "<br />" " " | trim) "" }}{{ end }}
{{ end }}{{ end }}
{{- end -}}
{{- end -}}
