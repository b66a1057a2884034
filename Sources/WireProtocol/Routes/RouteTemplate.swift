package import GateVocabulary

/// What a route asks of who calls it.
package enum Permission: Hashable, Sendable {
    /// Whoever can connect: probes of the operating system's supervisors.
    case anybody
    /// Any caller configuration knows.
    case anyCaller
    /// A caller that holds at least one of these.
    case oneOf([Grant])

    /// - Parameter holds: Whether the attested caller has a grant.
    package func isSatisfied(by holds: (Grant) -> Bool) -> Bool {
        switch self {
        case .anybody, .anyCaller: true
        case .oneOf(let grants): grants.contains(where: holds)
        }
    }

    package var needsCaller: Bool { self != .anybody }
}

/// Every operation of the gateway, one case per method and path.
///
/// The OpenAPI document describes exactly these; the matcher knows no others.
package enum RouteTemplate: String, CaseIterable, Hashable, Sendable {
    // The commonest stands first: matching walks this list.
    case postSend
    case streamSends
    case explainSend
    case acknowledgeEvent
    case getSend
    case cancelSend
    case listTypes
    case getType
    case listEvents
    case putRecipient
    case getRecipient
    case deleteRecipient
    case putDevice
    case deleteDevice
    case putAddress
    case deleteAddress
    case addDeviceKey
    case confirmDeviceKey
    case addConsent
    case listConsents
    case withdrawConsent
    case putPreference
    case listPreferences
    case addPermissionPrompt
    case listDecisions
    case addReceipt
    case listKeys
    case promoteKey
    case suspendKey
    case revokeKey
    case destroyKey
    case activatePolicy
    case getCheckpoint
    case getTile
    case getHealth
    case getReadiness
    case getMetrics
    case getOpenAPI

    package var method: String {
        switch self {
        case .postSend, .streamSends, .explainSend, .acknowledgeEvent, .cancelSend, .addDeviceKey,
            .confirmDeviceKey, .addConsent, .withdrawConsent, .addPermissionPrompt, .addReceipt, .promoteKey,
            .suspendKey,
            .revokeKey, .destroyKey, .activatePolicy:
            "POST"
        case .putRecipient, .putDevice, .putAddress, .putPreference: "PUT"
        case .deleteRecipient, .deleteDevice, .deleteAddress: "DELETE"
        case .getSend, .listTypes, .getType, .listEvents, .getRecipient, .listConsents, .listPreferences,
            .listDecisions, .listKeys, .getCheckpoint, .getTile, .getHealth, .getReadiness, .getMetrics,
            .getOpenAPI:
            "GET"
        }
    }

    /// As OpenAPI writes it. `{tile}` is the one part that spans several segments.
    package var path: String {
        switch self {
        case .postSend: "/v1/sends"
        case .streamSends: "/v1/sends/stream"
        case .explainSend: "/v1/sends/explain"
        case .acknowledgeEvent: "/v1/sends/acknowledge"
        case .getSend: "/v1/sends/{send_id}"
        case .cancelSend: "/v1/sends/{send_id}/cancel"
        case .listTypes: "/v1/types"
        case .getType: "/v1/types/{type}"
        case .listEvents: "/v1/events"
        case .putRecipient, .getRecipient, .deleteRecipient: "/v1/recipients/{user}"
        case .putDevice, .deleteDevice: "/v1/recipients/{user}/devices/{device}"
        case .putAddress, .deleteAddress: "/v1/recipients/{user}/addresses/{address}"
        case .addDeviceKey: "/v1/recipients/{user}/devices/{device}/keys"
        case .confirmDeviceKey: "/v1/recipients/{user}/devices/{device}/keys/{key_id}/confirm"
        case .addConsent, .listConsents: "/v1/recipients/{user}/consents"
        case .withdrawConsent: "/v1/recipients/{user}/consents/{consent}/withdraw"
        case .putPreference: "/v1/recipients/{user}/preferences/{scope}"
        case .listPreferences: "/v1/recipients/{user}/preferences"
        case .addPermissionPrompt: "/v1/recipients/{user}/permission-prompts"
        case .listDecisions: "/v1/recipients/{user}/decisions"
        case .addReceipt: "/v1/receipts"
        case .listKeys: "/v1/keys"
        case .promoteKey: "/v1/keys/{key}/promote"
        case .suspendKey: "/v1/keys/{key}/suspend"
        case .revokeKey: "/v1/keys/{key}/revoke"
        case .destroyKey: "/v1/keys/{key}/destroy"
        case .activatePolicy: "/v1/policy/activate"
        case .getCheckpoint: "/v1/trail/checkpoint"
        case .getTile: "/v1/trail/tile/{tile}"
        case .getHealth: "/healthz"
        case .getReadiness: "/readyz"
        case .getMetrics: "/metrics"
        case .getOpenAPI: "/openapi.json"
        }
    }

    /// Who may call. What else a request may need because of what it asks is ``conditions``.
    package var permission: Permission {
        switch self {
        case .postSend, .streamSends, .acknowledgeEvent, .cancelSend, .listEvents: .oneOf([.send])
        case .explainSend, .listTypes, .getType: .anyCaller
        case .getSend: .oneOf([.send, .receiptsWrite, .subjectsRead])
        case .putRecipient, .putAddress, .deleteAddress: .oneOf([.recipientsWrite])
        case .getRecipient, .listDecisions: .oneOf([.subjectsRead])
        case .deleteRecipient: .oneOf([.subjectsErase])
        case .putDevice, .deleteDevice, .addDeviceKey, .confirmDeviceKey: .oneOf([.devicesWrite])
        case .addConsent, .withdrawConsent: .oneOf([.consentsWrite])
        case .listConsents: .oneOf([.consentsWrite, .subjectsRead])
        case .putPreference: .oneOf([.preferencesWrite, .preferencesStepUp])
        case .addPermissionPrompt: .oneOf([.preferencesWrite])
        case .listPreferences: .oneOf([.preferencesWrite, .subjectsRead])
        case .addReceipt: .oneOf([.receiptsWrite])
        case .listKeys: .oneOf([.keysRotate, .trailRead])
        case .promoteKey, .suspendKey, .revokeKey, .destroyKey: .oneOf([.keysRotate])
        case .activatePolicy: .oneOf([.policyActivate])
        case .getCheckpoint, .getTile: .oneOf([.trailRead])
        case .getMetrics: .oneOf([.metricsRead])
        case .getHealth, .getReadiness, .getOpenAPI: .anybody
        }
    }

    /// Grants a request needs besides, and when.
    package var conditions: [(grant: Grant, when: String)] {
        switch self {
        case .postSend, .streamSends:
            [
                (
                    .sendCritical,
                    "when the send asks for `critical`; without it the answer is 403 `critical_not_permitted`"
                )
            ]
        case .explainSend:
            [(.subjectsRead, "when the body names a stored recipient; with inline `facts` none is needed")]
        case .getSend:
            [(.subjectsRead, "or `receipts.write`, when another caller made the send")]
        case .addConsent:
            [(.consentsImport, "when `event_time` is more than 24 hours old")]
        case .putPreference:
            [
                (.preferencesStepUp, "when `source` is `in_app_step_up`"),
                (.preferencesWrite, "when `source` is any other"),
            ]
        default: []
        }
    }

    /// What the request's body is.
    package enum BodyKind: Hashable, Sendable {
        case none
        case json
        /// May be left out; an empty object says the same.
        case optionalJSON
        /// One JSON object per line.
        case lines

        /// The media type a body must have.
        package var mediaType: String? {
            switch self {
            case .none: nil
            case .json, .optionalJSON: "application/json"
            case .lines: "application/x-ndjson"
            }
        }
    }

    package var bodyKind: BodyKind {
        switch self {
        case .streamSends: .lines
        case .cancelSend, .withdrawConsent, .promoteKey, .suspendKey, .destroyKey: .optionalJSON
        case .postSend, .explainSend, .acknowledgeEvent, .putRecipient, .putDevice, .putAddress,
            .addDeviceKey, .confirmDeviceKey, .addConsent, .putPreference, .addPermissionPrompt, .addReceipt,
            .revokeKey,
            .activatePolicy:
            .json
        case .getSend, .listTypes, .getType, .listEvents, .getRecipient, .deleteRecipient, .deleteDevice,
            .deleteAddress, .listConsents, .listPreferences, .listDecisions, .listKeys, .getCheckpoint,
            .getTile, .getHealth, .getReadiness, .getMetrics, .getOpenAPI:
            .none
        }
    }
}
