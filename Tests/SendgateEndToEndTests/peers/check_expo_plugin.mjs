// usage: node check_expo_plugin.mjs PLUGIN FOLDER: runs a config plugin as a prebuild does, twice, in an app in FOLDER.
//
// `expo/config-plugins` is stood in for: mods are kept and run with the shapes that Expo documents, a manifest as xml2js reads
// it and a project with the functions of the `xcode` package that the plugin calls. What was made is printed as JSON.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const [plugin, folder, options, rival] = process.argv.slice(2);
const root = path.resolve(folder);
const files = {
  "node_modules/expo/config-plugins.js": `
    const keep = (platform, name) => (config, action) => { (config.mods ??= []).push([platform, name, action]); return config; };
    exports.withAndroidManifest = keep("android", "manifest");
    exports.withAppBuildGradle = keep("android", "appBuildGradle");
    exports.withEntitlementsPlist = keep("ios", "entitlements");
    exports.withXcodeProject = keep("ios", "xcodeproj");
    exports.withDangerousMod = (config, [platform, action]) => keep(platform, "dangerous")(config, action);`,
  "sendgate/ios/NotificationService.swift": "final class NotificationService {}\n",
  "sendgate/ios/PushRecords.swift": "struct PushRecords {}\n",
  "sendgate/ios/keyset": "sendgate/keyset/v1\n",
  "sendgate/android/Sealed.java": "final class Sealed {}\n",
  "sendgate/android/SendgateMessagingService.kt": "class SendgateMessagingService\n",
  "ios/Podfile": "target 'Drop' do\nend\n",
  "android/app/build.gradle": "android {\n}\n\ndependencies {\n    implementation(\"com.facebook.react:react-android\")\n}\n",
};
for (const [name, text] of Object.entries(files)) {
  mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
  writeFileSync(path.join(root, name), text);
}
cpSync(plugin, path.join(root, "sendgate/withSendgate.js"));
const withSendgate = createRequire(path.join(root, "app.json"))("./sendgate/withSendgate.js");

class Project {
  targets = {};
  groups = { main: ["Drop"] };
  configurations = { A: { buildSettings: { PRODUCT_NAME: "Drop" } }, A_comment: "Debug" };
  hash = { project: { objects: {} } };
  #next = 0;
  pbxTargetByName(name) { return this.targets[name]; }
  getFirstProject() { return { uuid: "P", firstProject: { mainGroup: "main" } }; }
  addPbxGroup(paths, name, where) { this.groups[name] = paths.map((each) => `${where}/${each}`); return { uuid: name }; }
  addToPbxGroup(file, group) { this.groups[group].push(file); }
  addTarget(name, type, subfolder, bundle) {
    const { objects } = this.hash.project;
    if (!objects.PBXTargetDependency || !objects.PBXContainerItemProxy) throw new TypeError("no section to write to");
    this.configurations[`${name}1`] = { buildSettings: { PRODUCT_NAME: `"${name}"`, PRODUCT_BUNDLE_IDENTIFIER: bundle } };
    return (this.targets[name] = { uuid: `T${this.#next++}`, type, subfolder, bundle, phases: {} });
  }
  addBuildPhase(paths, type, name, uuid) {
    Object.values(this.targets).find((target) => target.uuid === uuid).phases[name] = [type, ...paths];
  }
  pbxXCBuildConfigurationSection() { return this.configurations; }
}

const kept = {
  manifest: { manifest: { application: [{ $: { "android:name": ".MainApplication" }, ...(rival && { service: [
    { $: { "android:name": rival }, "intent-filter": [{ action: [{ $: { "android:name": "com.google.firebase.MESSAGING_EVENT" } }] }] }] }) }] } },
  appBuildGradle: { contents: readFileSync(path.join(root, "android/app/build.gradle"), "utf8") },
  entitlements: { "aps-environment": "production" },
  xcodeproj: new Project(),
};
let config;
for (let run = 0; run < 2; run += 1) {
  config = withSendgate({
    name: "Drop", version: "2.1.0", ios: { bundleIdentifier: "no.getdrop.app", buildNumber: "7" },
    android: { package: "no.getdrop.app" },
  }, JSON.parse(options));
  for (const [platform, name, action] of config.mods) {
    const modRequest = { projectRoot: root, platformProjectRoot: path.join(root, platform), platform };
    const done = await action({ ...config, modResults: kept[name], modRequest });
    if (name !== "dangerous") kept[name] = done.modResults;
  }
}
const read = (name) => readFileSync(path.join(root, name), "utf8");
const { targets, groups, configurations } = kept.xcodeproj;
const extension = readdirSync(path.join(root, "ios/SendgatePush")).sort();
for (const name of extension.filter((each) => /plist|entitlements/.test(each))) {
  execFileSync("python3", ["-c", "import plistlib, sys; plistlib.load(open(sys.argv[1], 'rb'))", path.join(root, "ios/SendgatePush", name)]);
}
console.log(JSON.stringify({
  manifest: kept.manifest.manifest.application[0].service, gradle: kept.appBuildGradle.contents, entitlements: kept.entitlements,
  targets, groups, settings: configurations.SendgatePush1.buildSettings, extension, podfile: read("ios/Podfile"),
  java: read("android/app/src/main/java/no/getdrop/app/sendgate/Sealed.java"),
  kotlin: read("android/app/src/main/java/no/getdrop/app/sendgate/SendgateMessagingService.kt"),
  eas: config.extra.eas.build.experimental.ios.appExtensions,
}));
