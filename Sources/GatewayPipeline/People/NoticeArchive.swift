import CompliancePolicy

/// The texts people were shown, by digest: kept from the first consent that names one, so that a record can be
/// read long after the bundle has let its notice go. They say nothing of anybody.
extension StoreReading {
    /// - Parameter sha256: 64 lower-case hexadecimal digits.
    func noticeText(_ sha256: String) throws -> String? { try setting(noticeSetting(sha256)) }
}

extension StoreTransaction {
    func archiveNotice(_ notice: Notice) throws {
        guard try noticeText(notice.sha256) == nil else { return }
        try setSetting(noticeSetting(notice.sha256), to: notice.text)
    }
}

private func noticeSetting(_ sha256: String) -> String { "notice \(sha256)" }
