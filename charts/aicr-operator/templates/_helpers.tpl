{{- /* Names, labels and flags that several templates share. */ -}}

{{- /* One installation a cluster: the runtime is one object, so its names need no release prefix. */ -}}
{{- define "aicr-operator.name" -}}aicr-operator{{- end -}}

{{- /* The namespaces of the AICR Jobs. The product pages name them; they are no values. */ -}}
{{- define "aicr-operator.jobs" -}}aicr-jobs{{- end -}}
{{- define "aicr-operator.discovery" -}}aicr-discovery{{- end -}}
{{- define "aicr-operator.validation" -}}aicr-validation{{- end -}}

{{- define "aicr-operator.pullSecrets" -}}
{{- with .Values.imagePullSecrets -}}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}
{{- define "aicr-operator.selector" -}}
app.kubernetes.io/name: {{ include "aicr-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "aicr-operator.labels" -}}
{{ include "aicr-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* The one subject that the operator's bindings name. */ -}}
{{- define "aicr-operator.subjects" -}}
- kind: ServiceAccount
  name: {{ include "aicr-operator.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- /* The Service of the webhooks, and what the certificates are named after. */ -}}
{{- define "aicr-operator.webhookService" -}}aicr-operator-webhook{{- end -}}

{{- /* What every webhook entry has: root and path. */ -}}
{{- define "aicr-operator.webhook" -}}
admissionReviewVersions: [v1]
clientConfig:
  service:
    name: {{ include "aicr-operator.webhookService" .root }}
    namespace: {{ .root.Release.Namespace }}
    path: {{ .path }}
    port: 443
failurePolicy: Fail
matchPolicy: Equivalent
sideEffects: None
timeoutSeconds: 5
{{- end -}}

{{- /* Resource amounts as cpu=100m,memory=256Mi. */ -}}
{{- define "aicr-operator.amounts" -}}
{{- $words := list -}}
{{- range $name, $amount := . }}{{ $words = append $words (printf "%s=%s" $name (toString $amount)) }}{{ end -}}
{{- join "," $words -}}
{{- end -}}

{{- /* Where charts lie, in its one form: OCI names have no capitals, Argo CD's URLs their scheme once and no slash at the end. */ -}}
{{- define "aicr-operator.repository" -}}
{{- .Values.registry.repository | lower | trimPrefix "oci://" | trimSuffix "/" -}}
{{- end -}}

{{- /* The values as flags of the binary, one YAML list. */ -}}
{{- define "aicr-operator.flags" -}}
{{- $v := .Values -}}
{{- $flags := list
      (printf "--namespace=%s" .Release.Namespace)
      (printf "--aicr-version=%s" $v.aicr.version)
      (printf "--aicr-image=%s" $v.aicr.image)
      (printf "--jobs-namespace=%s" (include "aicr-operator.jobs" .))
      (printf "--discovery-namespace=%s" (include "aicr-operator.discovery" .))
      (printf "--validation-namespace=%s" (include "aicr-operator.validation" .))
      "--jobs-service-account=aicr-jobs"
      "--snapshot-service-account=aicr-snapshot-launcher"
      "--snapshot-agent-service-account=aicr-snapshot-agent"
      (printf "--snapshot-privileged=%t" $v.aicr.snapshot.privileged)
      (printf "--engine-namespace=%s" $v.engine.namespace)
      (printf "--engine-project=%s" $v.engine.project)
      (printf "--registry-provider=%s" $v.registry.provider)
      (printf "--registry-repository=%s" (include "aicr-operator.repository" .))
      "--metrics-address=0.0.0.0:8080"
      "--webhook-address=0.0.0.0:9443"
      (printf "--webhook-service=%s" (include "aicr-operator.webhookService" .))
      (printf "--certificates-provider=%s" $v.certificates.provider)
      (printf "--log-level=%s" $v.logLevel)
      (printf "--log-format=%s" $v.logFormat) -}}
{{- if eq $v.registry.provider "aws" }}{{ $flags = append $flags (printf "--registry-repo-creds-secret=%s" $v.registry.auth.repoCredsSecret) }}{{ end -}}
{{- range $key, $value := $v.aicr.jobs.nodeSelector }}{{ $flags = append $flags (printf "--jobs-node-selector=%s=%s" $key $value) }}{{ end -}}
{{- range $v.aicr.jobs.tolerations }}{{ $flags = append $flags (printf "--jobs-toleration=%s" (toRawJson .)) }}{{ end -}}
{{- with $v.aicr.snapshot.requests }}{{ $flags = append $flags (printf "--snapshot-requests=%s" (include "aicr-operator.amounts" .)) }}{{ end -}}
{{- with $v.aicr.snapshot.limits }}{{ $flags = append $flags (printf "--snapshot-limits=%s" (include "aicr-operator.amounts" .)) }}{{ end -}}
{{- if $v.validation.enabled }}{{ $flags = concat $flags (list "--validation-enabled" "--validation-service-account=aicr-validation-launcher") }}
{{- range $v.aicr.validatorImages }}{{ $flags = append $flags (printf "--validator-image=%s" .) }}{{ end -}}
{{- end -}}
{{- with $v.registry.auth.staticSecretRef }}{{ $flags = append $flags (printf "--registry-static-secret=%s" .) }}{{ end -}}
{{- range $v.gates.customResources }}{{ $flags = append $flags (printf "--gate-custom-resource=%s" .) }}{{ end -}}
{{- range $v.registry.plainHTTP }}{{ $flags = append $flags (printf "--registry-plain-http=%s" .) }}{{ end -}}
{{- with $v.registry.caBundle }}{{ $flags = append $flags (printf "--registry-ca-bundle=%s" .) }}{{ end -}}
{{- with $v.chartSources.caBundle }}{{ $flags = append $flags (printf "--chart-sources-ca-bundle=%s" .) }}{{ end -}}
{{- range $v.chartSources.allowedAddresses }}{{ $flags = append $flags (printf "--chart-sources-allowed-address=%s" .) }}{{ end -}}
{{- if eq $v.certificates.provider "self" }}{{ $flags = append $flags (printf "--certificates-secret=%s-ca" (include "aicr-operator.webhookService" .)) }}
{{- else }}{{ $flags = append $flags "--certificates-folder=/etc/aicr-operator/webhook" }}{{ end -}}
{{- range $v.approvers.users }}{{ $flags = append $flags (printf "--approver-user=%s" .) }}{{ end -}}
{{- range $v.approvers.groups }}{{ $flags = append $flags (printf "--approver-group=%s" .) }}{{ end -}}
{{- if $v.admission.allowSelfApproval }}{{ $flags = append $flags "--allow-self-approval" }}{{ end -}}
{{- toYaml $flags -}}
{{- end -}}

{{- /* The approvers as subjects of a binding. */ -}}
{{- define "aicr-operator.approvers" -}}
{{- $subjects := list -}}
{{- range .Values.approvers.users }}{{ $subjects = append $subjects (dict "apiGroup" "rbac.authorization.k8s.io" "kind" "User" "name" .) }}{{ end -}}
{{- range .Values.approvers.groups }}{{ $subjects = append $subjects (dict "apiGroup" "rbac.authorization.k8s.io" "kind" "Group" "name" .) }}{{ end -}}
{{- toYaml $subjects -}}
{{- end -}}
