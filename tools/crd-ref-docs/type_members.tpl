{{- /* The rules and the meaning of a field. Only kinds that an API server serves mark optional fields. */ -}}
{{- define "type_members" }}
{{- $rules := list }}
{{- $optional := ne (markdownTemplateValue "required") "marked" }}
{{- $listed := or .Type.EnumValues (and .Type.UnderlyingType .Type.UnderlyingType.EnumValues) }}
{{- range .Validation }}
{{- $rule := markdownRenderFieldDoc . | replace "<br />" " " }}
{{- if hasPrefix "Optional" $rule }}{{ $optional = true }}
{{- else if hasPrefix "Required" $rule }}{{ $optional = false }}
{{- else if regexMatch "^(EmbeddedResource|Schemaless|Type)" $rule }}
{{- else if not (and $listed (contains "Enum" $rule)) }}{{ $rules = append $rules $rule }}{{ end }}
{{- end }}
{{- if not $optional }}{{ $rules = prepend $rules "required" }}{{ end }}
{{- with .Default }}{{ $rules = append $rules (printf "default %s" (markdownRenderDefault .)) }}{{ end }}
{{- if $rules }} ({{ join ", " $rules }}){{ end }}
{{- with markdownRenderFieldDoc .Doc | replace "<br />" " " | trim }}: {{ . }}{{ end }}
{{- end }}
