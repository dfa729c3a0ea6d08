"""Questions and the passages that answer them, the same eight in every language.

They are of one small world, so that each passage is a plausible answer to a neighbor's question,
and a question shares no name, number or telling word with its passage: nothing but the meaning
leads from one to the other.
"""

from collections.abc import Mapping
from typing import TypeAlias

Pairs: TypeAlias = tuple[tuple[str, str], ...]

PROBE_VERSION = "3"

PROBES: Mapping[str, Pairs] = {
    "English": (
        (
            "How do I get my money back for a train ticket?",
            "Travel costs are reimbursed once the receipts have been handed in.",
        ),
        (
            "What should I do when I feel unwell in the morning?",
            "Employees who are sick call their manager before the shift begins.",
        ),
        (
            "My computer does not start any more.",
            "Broken laptops are repaired by the technicians on the ground floor.",
        ),
        (
            "When may I go on vacation?",
            "Leave in summer has to be requested two weeks ahead.",
        ),
        (
            "Where can I eat at noon?",
            "The canteen serves warm meals and salads.",
        ),
        (
            "Who helps a new colleague?",
            "Beginners are accompanied by a mentor during their first month.",
        ),
        (
            "I cannot remember my password.",
            "Forgotten login details are renewed by the support desk.",
        ),
        (
            "What happens if there is a fire?",
            "At the sound of the alarm everybody leaves the building by the stairs.",
        ),
    ),
    "German": (
        (
            "Wie bekomme ich mein Geld für die Bahnkarte wieder?",
            "Reisekosten werden erstattet, sobald die Belege eingereicht sind.",
        ),
        (
            "Was mache ich, wenn mir morgens schlecht ist?",
            "Erkrankte Mitarbeiter rufen vor Arbeitsbeginn ihre Vorgesetzte an.",
        ),
        (
            "Mein Computer geht nicht mehr an.",
            "Defekte Laptops reparieren die Techniker im Erdgeschoss.",
        ),
        (
            "Wann kann ich in die Ferien fahren?",
            "Urlaub im Sommer muss zwei Wochen vorher beantragt werden.",
        ),
        (
            "Wo gibt es mittags etwas zu essen?",
            "Die Kantine bietet warme Speisen und Salate an.",
        ),
        (
            "Wer hilft einem neuen Kollegen?",
            "Anfänger werden im ersten Monat von einer Mentorin begleitet.",
        ),
        (
            "Ich weiß mein Passwort nicht mehr.",
            "Vergessene Zugangsdaten setzt der Support zurück.",
        ),
        (
            "Was ist zu tun, wenn es brennt?",
            "Bei Alarm verlassen alle das Gebäude über die Treppe.",
        ),
    ),
    "French": (
        (
            "Comment récupérer l'argent d'un billet de train ?",
            "Les frais de déplacement sont remboursés sur présentation des justificatifs.",
        ),
        (
            "Que faire si je ne me sens pas bien le matin ?",
            "Un salarié malade appelle son responsable avant de prendre son poste.",
        ),
        (
            "Mon ordinateur ne s'allume plus.",
            "Les techniciens du rez-de-chaussée réparent les portables en panne.",
        ),
        (
            "Quand puis-je partir en vacances ?",
            "Les congés d'été se demandent deux semaines à l'avance.",
        ),
        (
            "Où peut-on manger à midi ?",
            "La cantine propose des plats chauds et des salades.",
        ),
        (
            "Qui aide un nouveau collègue ?",
            "Un tuteur accompagne les débutants pendant leur premier mois.",
        ),
        (
            "J'ai oublié mon mot de passe.",
            "L'assistance renouvelle les identifiants perdus.",
        ),
        (
            "Que se passe-t-il en cas d'incendie ?",
            "Quand l'alarme sonne, tout le monde sort du bâtiment par l'escalier.",
        ),
    ),
    "Spanish": (
        (
            "¿Cómo recupero el dinero de un billete de tren?",
            "Los gastos de viaje se reembolsan al entregar los recibos.",
        ),
        (
            "¿Qué hago si me siento mal por la mañana?",
            "El empleado enfermo llama a su jefa antes de empezar la jornada.",
        ),
        (
            "Mi ordenador ya no enciende.",
            "Los técnicos de la planta baja reparan los portátiles averiados.",
        ),
        (
            "¿Cuándo puedo irme de vacaciones?",
            "El permiso de verano se solicita con dos semanas de antelación.",
        ),
        (
            "¿Dónde se puede comer al mediodía?",
            "La cantina ofrece platos calientes y ensaladas.",
        ),
        (
            "¿Quién ayuda a un colega nuevo?",
            "Un tutor acompaña a los principiantes durante su primer mes.",
        ),
        (
            "No recuerdo mi contraseña.",
            "El servicio de soporte renueva las claves olvidadas.",
        ),
        (
            "¿Qué pasa si hay un incendio?",
            "Cuando suena la alarma, todos salen del edificio por la escalera.",
        ),
    ),
    "Russian": (
        (
            "Как вернуть деньги за билет на поезд?",
            "Расходы на командировку возмещаются после сдачи чеков.",
        ),
        (
            "Что делать, если утром мне плохо?",
            "Заболевший сотрудник звонит начальнику до начала смены.",
        ),
        (
            "Мой компьютер больше не включается.",
            "Сломанные ноутбуки чинят техники на первом этаже.",
        ),
        (
            "Когда можно поехать отдыхать?",
            "Летний отпуск запрашивают за две недели.",
        ),
        (
            "Где можно поесть днём?",
            "В столовой подают горячие блюда и салаты.",
        ),
        (
            "Кто помогает новому коллеге?",
            "Начинающих в первый месяц сопровождает наставник.",
        ),
        (
            "Я не помню свой пароль.",
            "Забытые данные для входа обновляет служба поддержки.",
        ),
        (
            "Что будет, если начнётся пожар?",
            "При сигнале тревоги все выходят из здания по лестнице.",
        ),
    ),
    "Greek": (
        (
            "Πώς παίρνω πίσω τα χρήματα για ένα εισιτήριο τρένου;",
            "Τα έξοδα ταξιδιού καλύπτονται μόλις παραδοθούν οι αποδείξεις.",
        ),
        (
            "Τι κάνω αν το πρωί δεν νιώθω καλά;",
            "Ο άρρωστος εργαζόμενος τηλεφωνεί στον προϊστάμενο πριν από τη βάρδια.",
        ),
        (
            "Ο υπολογιστής μου δεν ανοίγει πια.",
            "Οι τεχνικοί στο ισόγειο επισκευάζουν τις χαλασμένες συσκευές.",
        ),
        (
            "Πότε μπορώ να πάω διακοπές;",
            "Η θερινή άδεια ζητείται δύο εβδομάδες νωρίτερα.",
        ),
        (
            "Πού μπορώ να φάω το μεσημέρι;",
            "Η καντίνα σερβίρει ζεστά πιάτα και σαλάτες.",
        ),
        (
            "Ποιος βοηθά έναν νέο συνάδελφο;",
            "Τους αρχάριους συνοδεύει ένας μέντορας τον πρώτο μήνα.",
        ),
        (
            "Δεν θυμάμαι τον κωδικό μου.",
            "Τα ξεχασμένα στοιχεία σύνδεσης ανανεώνει η τεχνική υποστήριξη.",
        ),
        (
            "Τι γίνεται αν πιάσει φωτιά;",
            "Όταν χτυπήσει ο συναγερμός, όλοι βγαίνουν από το κτίριο από τις σκάλες.",
        ),
    ),
    "Arabic": (
        ("كيف أسترد ثمن تذكرة القطار؟", "تُعوَّض نفقات السفر بعد تسليم الإيصالات."),
        ("ماذا أفعل إذا شعرت بالتعب صباحا؟", "على الموظف المريض أن يتصل بمديره قبل بدء الدوام."),
        ("حاسوبي لم يعد يعمل.", "يصلح الفنيون في الطابق الأرضي الأجهزة المعطلة."),
        ("متى يمكنني أن أذهب للاستجمام؟", "تُطلب إجازة الصيف قبل أسبوعين."),
        ("أين آكل ظهرا؟", "يقدم المطعم وجبات ساخنة وسلطات."),
        ("من يساعد زميلا جديدا؟", "يرافق المبتدئين مرشد في شهرهم الأول."),
        ("لا أتذكر كلمة السر.", "يجدد قسم الدعم بيانات الدخول المنسية."),
        ("ماذا يحدث إذا اندلع حريق؟", "عند سماع الإنذار يغادر الجميع المبنى عبر الدرج."),
    ),
    "Hebrew": (
        ("איך מקבלים בחזרה את הכסף על כרטיס רכבת?", "הוצאות נסיעה משולמות לאחר הגשת חשבוניות."),
        ("מה עושים אם אני מרגיש רע בבוקר?", "עובד חולה מתקשר למנהל לפני תחילת המשמרת."),
        ("המחשב שלי כבר לא נדלק.", "הטכנאים בקומת הקרקע מתקנים ציוד שהתקלקל."),
        ("מתי אפשר לצאת לנופש?", "חופשת קיץ מבקשים שבועיים מראש."),
        ("איפה אוכלים בצהריים?", "הקפיטריה מגישה מנות חמות וסלטים."),
        ("מי עוזר לעמית חדש?", "חונך מלווה את המתחילים בשבועות הראשונים."),
        ("אני לא זוכר את הסיסמה.", "התמיכה מחליפה פרטי כניסה שנשכחו."),
        ("מה קורה אם פורצת שריפה?", "כשנשמעת האזעקה כולם יוצאים מהבניין דרך המדרגות."),
    ),
    "Hindi": (
        (
            "ट्रेन के टिकट का पैसा वापस कैसे मिलेगा?",
            "रसीदें जमा करने पर यात्रा का खर्च चुकाया जाता है।",
        ),
        (
            "सुबह तबीयत खराब हो तो क्या करूँ?",
            "बीमार कर्मचारी काम शुरू होने से पहले अपने प्रबंधक को फ़ोन करे।",
        ),
        ("मेरा कंप्यूटर चालू नहीं हो रहा।", "टूटे लैपटॉप की मरम्मत भूतल पर तकनीशियन करते हैं।"),
        ("मैं घूमने कब जा सकता हूँ?", "गर्मियों की छुट्टी दो हफ़्ते पहले माँगनी पड़ती है।"),
        ("दोपहर में खाना कहाँ मिलता है?", "कैंटीन गरम व्यंजन और सलाद परोसती है।"),
        (
            "नए साथी की मदद कौन करता है?",
            "शुरुआत करने वालों के संग पहले महीने एक मार्गदर्शक रहता है।",
        ),
        ("मुझे अपना पासवर्ड याद नहीं।", "भूली हुई लॉगिन जानकारी सहायता केंद्र फिर से बनाता है।"),
        ("आग लग जाए तो क्या होगा?", "अलार्म बजने पर सब लोग सीढ़ियों से इमारत छोड़ते हैं।"),
    ),
    "Chinese": (
        ("火车票的钱怎么拿回来？", "交齐单据后即可报销差旅费。"),
        ("早上身体不舒服怎么办？", "生病的员工须在开工前致电主管。"),
        ("我的电脑启动不了。", "损坏的笔记本由一楼的技术员修理。"),
        ("什么时候可以出去玩？", "夏季年休要提前两周申请。"),
        ("中午在哪里吃饭？", "食堂供应热菜和沙拉。"),
        ("谁来帮助新同事？", "入职首月有导师陪伴。"),
        ("我想不起密码了。", "忘记的登录信息由服务台重置。"),
        ("着火了该怎么办？", "警报响起时，所有人走楼梯离开大厦。"),
    ),
    "Japanese": (
        ("電車の切符代はどうすれば戻ってきますか。", "領収書を出すと旅費が精算される。"),
        ("朝、具合が悪いときはどうしますか。", "病気の社員は始業前に上司へ電話をかける。"),
        ("パソコンが起動しません。", "壊れた機器は一階の技術者が修理する。"),
        ("いつ遊びに行けますか。", "夏の休暇は二週間前に申請すること。"),
        ("お昼はどこで食べられますか。", "カフェテリアでは温かい料理とサラダを提供している。"),
        ("新しい同僚を手伝うのは誰ですか。", "入社一か月目は指導役が付き添う。"),
        ("パスワードを思い出せません。", "忘れたログイン情報は窓口が再発行する。"),
        ("火事になったらどうなりますか。", "警報が鳴ると全員が階段で建物を離れる。"),
    ),
    "Korean": (
        ("기차표 값은 어떻게 돌려받나요?", "영수증을 내면 출장비가 정산된다."),
        ("아침에 몸이 안 좋으면 어떻게 하나요?", "아픈 직원은 근무 시작 전 상사에게 전화한다."),
        ("컴퓨터가 켜지지 않아요.", "고장 난 노트북은 일층 기술자가 수리한다."),
        ("언제 놀러 갈 수 있나요?", "여름 휴가는 두 주 전에 신청해야 한다."),
        ("점심은 어디서 먹나요?", "구내식당은 따뜻한 요리와 샐러드를 제공한다."),
        ("새로 온 동료를 누가 도와주나요?", "첫 달에는 멘토가 초보자와 함께한다."),
        ("비밀번호가 기억나지 않아요.", "잊어버린 로그인 정보는 지원 센터가 재설정한다."),
        ("불이 나면 어떻게 되나요?", "경보가 울리는 즉시 모두 계단으로 건물을 떠난다."),
    ),
    "Thai": (
        ("จะขอเงินค่าตั๋วรถไฟคืนได้อย่างไร", "บริษัทจ่ายชดเชยการเดินทางเมื่อส่งใบเสร็จแล้ว"),
        ("ถ้าตอนเช้ารู้สึกไม่สบายต้องทำอย่างไร", "พนักงานที่ป่วยโทรหาหัวหน้าก่อนเริ่มงาน"),
        ("คอมพิวเตอร์ของฉันเปิดไม่ติด", "ช่างเทคนิคชั้นล่างซ่อมโน้ตบุ๊กที่เสีย"),
        ("ไปเที่ยวได้เมื่อไหร่", "การลาพักร้อนต้องยื่นล่วงหน้าสองสัปดาห์"),
        ("กินข้าวกลางวันได้ที่ไหน", "โรงอาหารมีจานร้อนและสลัดบริการ"),
        ("ใครช่วยเพื่อนร่วมงานใหม่", "พี่เลี้ยงดูแลผู้เริ่มต้นในเดือนแรก"),
        ("ฉันจำรหัสผ่านไม่ได้", "ฝ่ายสนับสนุนออกข้อมูลเข้าสู่ระบบที่ลืมให้อีกครั้ง"),
        ("ถ้าไฟไหม้จะเกิดอะไรขึ้น", "เมื่อสัญญาณเตือนดัง ทุกคนออกจากอาคารทางบันได"),
    ),
}
