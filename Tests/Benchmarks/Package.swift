// swift-tools-version: 6.2
import PackageDescription

// How fast the parts are, each against a floor of the same run:
//
//     cd Tests/Benchmarks && swift run -c release GateBenchmarks ../../Policies
//
// A package of its own, so that `swift build` and `swift test` of the product never build it. Its modules are links to
// the product's: `package` declarations are visible inside one package only, so a dependency on the product would
// see none of what is measured. A plain program rather than a benchmarking library, because every threshold here is
// a ratio between two measurements of one run, and libraries compare one measurement with a number from another day.

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// - Parameter isConfined: See the product's `Package.swift`.
func module(
    _ name: String, _ dependencies: [Target.Dependency] = [], isConfined: Bool = false
) -> Target {
    .target(
        name: name, dependencies: dependencies,
        swiftSettings: strict + (isConfined ? [.unsafeFlags(["-enforce-exclusivity=unchecked"])] : []))
}

let package = Package(
    name: "GateBenchmarks",
    dependencies: [
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2")
    ],
    targets: [
        .systemLibrary(
            name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "CIDN2", pkgConfig: "libidn2", providers: [.apt(["libidn2-dev"])]),
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(
            name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
        module("CanonicalJSON"),
        module("GateVocabulary", ["CanonicalJSON", "CIDN2"]),
        module("SealedFormat"),
        module("OpenSSLCrypto", ["COpenSSL", "CSodium", "GateVocabulary", "SealedFormat"]),
        module("BundleModel", ["CanonicalJSON", "GateVocabulary", "OpenSSLCrypto"]),
        module("GateRecords", ["CanonicalJSON", "GateVocabulary", "OpenSSLCrypto"]),
        module("WireProtocol", ["CanonicalJSON", "GateRecords", "GateVocabulary", "SealedFormat"]),
        module("CompliancePolicy", ["BundleModel", "CanonicalJSON", "GateVocabulary"]),
        module("PolicyStatutes", ["BundleModel", "CanonicalJSON", "GateVocabulary"]),
        module(
            "PolicyProof",
            ["BundleModel", "CanonicalJSON", "CompliancePolicy", "GateVocabulary", "PolicyStatutes"]),
        module("PayloadComposition", ["CanonicalJSON", "GateVocabulary", "SealedFormat"]),
        module(
            "AuditTrail", ["CanonicalJSON", "GateRecords", "GateVocabulary", "OpenSSLCrypto", "SealedFormat"]),
        module("KeyLifecycle", ["CanonicalJSON", "GateVocabulary"]),
        module(
            "SendPlanning",
            [
                "AuditTrail", "CanonicalJSON", "BundleModel", "CompliancePolicy", "GateRecords",
                "GateVocabulary",
                "PayloadComposition",
                "SealedFormat",
            ]),
        module(
            "GateSteps",
            [
                "AuditTrail", "CanonicalJSON", "BundleModel", "CompliancePolicy", "GateVocabulary",
                "KeyLifecycle",
                "OpenSSLCrypto", "GateRecords", "SealedFormat", "SendPlanning",
                "WireProtocol",
            ], isConfined: true),
        module(
            "GatewayPipeline",
            [
                "AuditTrail", "CanonicalJSON", "BundleModel", "CompliancePolicy", "GateSteps",
                "GateVocabulary",
                "KeyLifecycle", "OpenSSLCrypto", "GateRecords", "SealedFormat",
                "SendPlanning", "WireProtocol",
            ], isConfined: true),
        module(
            "SQLiteStore",
            [
                "CSQLite", "GatewayPipeline", "GateSteps", "GateVocabulary", "OpenSSLCrypto",
                "GateRecords",
            ], isConfined: true),
        module(
            "PolicyPages", ["BundleModel", "CanonicalJSON", .product(name: "Yams", package: "Yams")]),
        module(
            "PolicyFiles",
            [
                "AuditTrail", "CanonicalJSON", "BundleModel", "CompliancePolicy", "GateRecords",
                "GateVocabulary",
                "OpenSSLCrypto", "PolicyPages", "SealedFormat",
            ]),
        module(
            "GateTestKit",
            [
                "AuditTrail", "BundleModel", "CanonicalJSON", "CompliancePolicy", "GateRecords",
                "GateVocabulary",
                "PayloadComposition",
                "OpenSSLCrypto", "PolicyFiles",
            ]),
        module(
            "GateFloor",
            [
                "CanonicalJSON", "CSQLite", "GateSteps", "GateTestKit", "GateVocabulary", "OpenSSLCrypto",
                "GateRecords", "SQLiteStore",
            ]),
        .executableTarget(
            name: "GateBenchmarks",
            dependencies: [
                "AuditTrail", "CanonicalJSON", "BundleModel", "CompliancePolicy", "GatewayPipeline",
                "GateFloor", "GateSteps", "GateTestKit", "GateVocabulary", "GateRecords",
                "OpenSSLCrypto", "PolicyFiles", "PolicyProof", "SealedFormat",
                "SendPlanning",
                "SQLiteStore", "WireProtocol",
            ], swiftSettings: strict),
    ]
)
