import CanonicalJSON

extension Reason: DescribedChoice {
    /// Every reason with what it makes of a send, who can fix it, and the details it has.
    package static var means: String {
        let lines = allCases.map { reason in
            let details = reason.details.map { "`\($0.rawValue)` (\(reason.whoCanFix($0).rawValue))" }
            let of = details.isEmpty ? "" : "; details \(details.joined(separator: ", "))"
            return "- `\(reason.rawValue)`: \(reason.outcome.name), \(reason.whoCanFix(nil).rawValue)\(of)"
        }
        return (["Each with its outcome, who can fix it, and the details it may carry:", ""] + lines)
            .joined(separator: "\n")
    }
}

extension Detail: DescribedChoice {
    /// Of each detail, the reasons that carry it.
    package static var means: String {
        let lines = allCases.map { detail in
            let reasons = Reason.allCases.filter { $0.details.contains(detail) }.map { "`\($0.rawValue)`" }
            return "- `\(detail.rawValue)`, of \(reasons.joined(separator: ", "))"
        }
        return (["Each with the reasons it may stand beside:", ""] + lines).joined(separator: "\n")
    }
}

extension WhoCanFix: DescribedChoice {
    package static var means: String {
        """
        - `producer`: the service that sent it, under a new `id`; after `unknown_type` and `invalid_params` under a new one or, while no other content has it, the same
        - `recipient`: the person, who registers, verifies, agrees or switches on
        - `security`: the security team, in `callers.yaml` and `critical.yaml`
        - `compliance`: whoever is responsible for the policy, in its pages
        - `operator`: whoever runs the gateway
        - `nobody`: a law or a limit says so, or the person set it so for now
        """
    }
}

extension SendEventKind: DescribedChoice {
    package static var means: String {
        """
        - `handed_over`: the next hop has it
        - `refused_by_hop`: the next hop will never take it
        - `expired_unsent`: no time was left to try again, and the next hop had not taken it
        - `ambiguous`: it is not tried again, and the next hop may have it; the reason says why
        - `withdrawn`: it waited and does not go on
        - `summarised`: it went into a summary with others
        - `mandatory_unreached`: a notice the law demands reached nobody, and must go another way
        - `accepted_by_provider`: a receipt; the provider took it
        - `failed`: a receipt; the provider refused it for good
        - `token_gone`: a receipt; the provider no longer knows the token
        - `expired`: a receipt; the provider gave it up when its time was over
        - `user_observed`: a receipt; the person saw it or acted on it
        - `in_doubt`: the next hop may have it, and it goes again under the same id; the reason says why
        """
    }
}
