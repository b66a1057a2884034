/// How long a gateway remembers the ids of requests and what was sent.
package enum Retention {
    /// The least of `limits.retention_days`: a repeated id is answered with the first answer for so long, whatever is configured.
    package static let daysMin: Int64 = 31
}
